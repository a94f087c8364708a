"""The page in a real browser: Debian's chromium, driven by Playwright. Without either, all of this is skipped, loudly.

apt-get install chromium && pip install playwright
"""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import pytest

from explore.served import serving

pytest.importorskip("uvicorn")
CHROMIUM = shutil.which("chromium")
try:
    from playwright.sync_api import sync_playwright
except ImportError:
    sync_playwright = None
if CHROMIUM is None or sync_playwright is None:
    MISSING = "THE PAGE IS NOT TESTED IN A BROWSER: it needs chromium on the PATH and pip install playwright"
    print(f"\n{MISSING}\n")
    pytest.skip(MISSING, allow_module_level=True)

FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
ROOT = Path(__file__).resolve().parents[2]
CHECKPOINT = ROOT / "benchmarks" / "models" / "trained-sine-sum"
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
ROOMS = ("approximate", "attend", "program", "rates", "audit", "trust")
PATIENCE = 180_000  # milliseconds; a busy machine compiles slowly
EVIL = "<script>window.pwned=1</script><img src=x onerror=window.pwned=1>\\u001b[2J"


@pytest.fixture(scope="module")
def browser():
    with warnings.catch_warnings(), sync_playwright() as playwright:
        warnings.simplefilter("ignore")  # of the driver's own event loop
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)


@pytest.fixture(scope="module")
def server():
    with serving(str(CHECKPOINT)) as served:
        yield served


@pytest.fixture
def page(browser, server):
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    opened = context.new_page()
    opened.set_default_timeout(PATIENCE)
    opened.complaints = []
    opened.on("console", lambda m: opened.complaints.append(m.text) if m.type in ("error", "warning") else None)
    opened.on("pageerror", lambda problem: opened.complaints.append(str(problem)))
    opened.goto(server.address)
    opened.wait_for_selector("h1")
    yield opened
    context.close()


def visit(page, room):
    page.click(f'nav a[data-room="{room}"]')
    page.wait_for_selector(f'nav a[data-room="{room}"][aria-current]')


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def overflow(page):
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def test_every_room_opens_without_a_complaint_and_fits_a_phone_in_the_dark(page):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.emulate_media(color_scheme="dark")
    for width in (1200, 390):
        page.set_viewport_size({"width": width, "height": 800})
        for room in ROOMS:
            visit(page, room)
            assert page.locator("p.proved").count() == 1 and page.locator(".footing code").inner_text()
            assert overflow(page) <= 0, (room, width)
    assert page.complaints == []
    assert all(url.startswith((page.url.split("#")[0], "data:", "blob:")) for url in asked)
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="light")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark


@pytest.mark.slow
def test_a_link_of_a_lesson_shows_a_view_and_starts_no_job(page, server):
    jobs = []
    page.on("request", lambda request: jobs.append(request.url) if "/api/jobs" in request.url else None)
    links = page.locator(".lesson a.go")
    addresses = [links.nth(i).get_attribute("href") for i in range(links.count())]
    assert page.locator(".lesson").count() == 8 and len(addresses) == 8
    for address in addresses:
        page.goto(server.address + address)
        page.reload()
        page.wait_for_selector(".footing")
        assert page.locator("h1").inner_text().lower().startswith(address[2:].partition("?")[0])
    assert jobs == [] and page.complaints == []


@pytest.mark.slow
def test_a_build_by_keyboard_alone_is_certified_then_broken_then_unfolded(page):
    visit(page, "approximate")
    page.get_by_label("f =").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("x1**2")
    page.get_by_label("on the box").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("[0,1]")
    page.get_by_role("button", name="Build and prove").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".claim .badge")
    assert page.locator(".claim .badge").inner_text() == "certified"
    assert "x1**2" in page.locator(".claim .sentence").inner_text()
    slider = page.get_by_label("how far the weight is moved")
    slider.focus()
    page.keyboard.press("End")
    page.wait_for_selector(".break .badge")
    assert page.locator(".break .badge").inner_text() == "refused"
    visit(page, "trust")
    press(page, "Open the proof of my last build")
    page.wait_for_selector(".rule-facts")
    page.locator(".rule-facts summary").first.click()
    assert page.locator("pre.code").first.inner_text()
    assert page.complaints == []


@pytest.mark.slow
def test_the_other_rooms_do_what_they_say(page, tmp_path):
    visit(page, "attend")
    press(page, "Look")
    page.wait_for_selector(".matrix td")
    before = page.locator(".claim .number").first.inner_text()
    page.get_by_label("sharpness of the scores").focus()
    page.keyboard.press("End")
    page.wait_for_function("old => document.querySelector('.claim .number').textContent !== old", arg=before)
    visit(page, "program")
    press(page, "Compile and run")
    page.wait_for_selector(".badge")
    assert page.locator(".badge").inner_text() == "certified"
    press(page, "Turing machine")
    press(page, "Compile and run")
    page.wait_for_selector(".tape")
    assert "107 steps" in page.locator("main").inner_text()
    with page.expect_download() as download:
        press(page, "Save machine.toml")
    from certiformer.compiler.machines.examples import busy_beaver
    from certiformer.compiler.machines.file import read_machine

    assert read_machine(download.value.path()).rows == busy_beaver(4).rows
    press(page, "RASP program")
    page.get_by_label("program", exact=False).first.select_option("")
    with page.expect_download() as download:
        press(page, "Save it as program.py for the command line")
    from certiformer.compiler.programs.sources import read_source

    saved = tmp_path / "program.py"
    download.value.save_as(saved)
    assert read_source(f"{saved}:program").program("abc") == ["c", "b", "a"]
    visit(page, "rates")
    press(page, "Decompose")
    page.wait_for_selector(".lines canvas")
    visit(page, "audit")
    press(page, "Audit the folder named at the start")
    page.wait_for_selector("table")
    page.get_by_role("button", name="verdict").click()
    assert page.locator('th[aria-sort="ascending"]').count() == 1
    page.set_input_files("input[type=file]", [str(CHECKPOINT / "config.json"), str(CHECKPOINT / "model.safetensors")])
    page.wait_for_selector("text=the checkpoint that was dropped here")
    assert page.complaints == []


@pytest.mark.slow
def test_what_a_user_types_is_shown_and_never_run(page, server):
    visit(page, "approximate")
    for label in ("f =", "on the box", "ε ="):
        page.get_by_label(label, exact=False).first.fill(EVIL)
    press(page, "Build and prove")
    page.wait_for_selector(".status.wrong")
    visit(page, "program")
    page.get_by_label("program", exact=False).first.select_option("")
    page.get_by_label("your program", exact=False).fill(EVIL)
    page.get_by_label("tokens it knows", exact=False).fill(EVIL)
    press(page, "Compile and run")
    page.wait_for_selector(".status.wrong")
    page.goto(f"{server.address}#/approximate?formula={EVIL}&box={EVIL}")
    page.reload()
    page.wait_for_selector(".footing")
    assert page.evaluate("window.pwned") is None


@pytest.mark.slow
def test_a_server_that_dies_is_told_and_a_reload_goes_on(browser):
    with serving() as first:
        context = browser.new_context()
        page = context.new_page()
        page.goto(first.address + "#/approximate?formula=x1**3&box=[0,2]")
        page.wait_for_selector(".footing")
        first.process.kill()
        first.process.wait()
        press(page, "Build and prove")
        page.wait_for_selector(".status.wrong")
        assert "does not answer" in page.locator(".status").inner_text()
    with serving("--port", str(first.port)):
        page.reload()
        page.wait_for_selector(".footing")
        assert page.get_by_label("f =").input_value() == "x1**3"
        context.close()


@pytest.mark.slow
@pytest.mark.skipif(not AXE.is_file(), reason="axe is not installed: npm ci in the folder web")
def test_axe_finds_nothing_serious(page):
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for room in ("", *ROOMS):
            page.goto(page.url.split("#")[0] + f"#/{room}")
            page.wait_for_timeout(200)
            page.evaluate(AXE.read_text(encoding="utf-8"))
            result = page.evaluate("axe.run()")
            serious = [v["id"] for v in result["violations"] if v["impact"] in ("serious", "critical")]
            assert serious == [], (room, scheme)


@pytest.mark.slow
def test_reports_are_alive_as_single_files(browser, tmp_path):
    import certiformer
    from certiformer.api.auditing import audit
    from certiformer.report.audit_page import write_audit

    artifact = certiformer.build("x1*x2", on="[-1,1]^2", eps="0.2", method="voronoi")
    files = {
        "report": artifact.subject.page(artifact),
        "circuit": (program := certiformer.compile("reverse", length=4)).subject.page(program),
        "audit": write_audit(audit(str(CHECKPOINT)).to_json()),
    }
    context = browser.new_context()
    for name, content in files.items():
        path = tmp_path / f"{name}.html"
        path.write_text(content, encoding="utf-8")
        page, complaints = context.new_page(), []
        page.on("console", lambda m, complaints=complaints: complaints.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda problem, complaints=complaints: complaints.append(str(problem)))
        page.goto(path.as_uri())
        page.wait_for_selector("button.sort, .exports button")
        for width in (1200, 390):
            page.set_viewport_size({"width": width, "height": 800})
            assert overflow(page) <= 0, (name, width)
        assert complaints == [], name
        if name == "report":
            slider = page.get_by_label("another tolerance")
            assert "holds" in page.locator("text=A claim with").inner_text()
            slider.focus()
            page.keyboard.press("Home")
            assert "does not hold" in page.locator("text=A claim with").inner_text()
            with page.expect_download() as download:
                page.get_by_role("button", name="CSV").first.click()
            assert download.value.suggested_filename.endswith(".csv")
        page.screenshot(path=tmp_path / f"{name}.png", full_page=True)
    context.close()
