"""The page of a study in a real browser: every switch does what it says, under the page's own policy.

Needs chromium on the PATH. The test script is allowed by adding its hash to the policy; everything else is the page as written.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
import subprocess

import pytest

from certiformer.report.rates_data import plain
from certiformer.report.rates_page import write_rates
from report.rates_example import example, series

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
SCRIPT = """
window.addEventListener("load", function () {
  var out = {}, figure = document.querySelector("figure.rates");
  function find(what) { return figure.querySelector(what); }
  function seen(one) { return one.getBoundingClientRect().width > 0; }
  function hidden() { return Array.from(figure.querySelectorAll(".panel"), function (panel) { return panel.hidden; }); }
  out.panels = [hidden()];
  find("button[data-error=l1]").click(); out.panels.push(hidden()); find("button[data-error=mse]").click();
  var group = find('.panel .s[data-s="1"]'), item = find('.item[data-s="1"]');
  out.series = [seen(group)];
  item.click(); out.series.push(seen(group)); item.click(); out.series.push(seen(group));
  find("[data-all=false]").click(); out.series.push(seen(group)); find("[data-all=true]").click();
  var line = find(".panel .theoryline");
  out.theory = [getComputedStyle(line).display];
  find("[data-show=theory]").click(); out.theory.push(getComputedStyle(line).display);
  var point = figure.querySelectorAll('.panel .s[data-s="1"] .pt')[2];
  point.scrollIntoView({block: "center"});
  var box = point.getBoundingClientRect();
  find(".plot svg").dispatchEvent(new PointerEvent("pointermove", {bubbles: true, clientX: box.x + 2, clientY: box.y + 2}));
  out.tip = document.querySelector("#tip").textContent;
  document.querySelector('.node[data-t="2"]').dispatchEvent(new MouseEvent("click", {bubbles: true}));
  out.edges = Array.from(document.querySelectorAll(".edge-fill:not([hidden])"), function (e) { return e.getAttribute("data-from"); });
  document.documentElement.setAttribute("data-result", JSON.stringify(out));
});
"""


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="there is no chromium here")
def test_every_switch_works_in_a_browser(tmp_path):
    page = write_rates(plain(example(series=[series(f"line {k}", -1.0 - k / 10) for k in range(6)])))
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    page = page.replace("script-src '", f"script-src 'sha256-{digest}' '", 1)
    path = tmp_path / "page.html"
    path.write_text(page.replace("</body>", f"<script>{SCRIPT}</script></body>"), encoding="utf-8")
    command = [str(BROWSER), *FLAGS, f"--user-data-dir={tmp_path}/profile", "--dump-dom", path.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
    found = re.search(r'data-result="([^"]*)"', shown)
    assert found is not None, shown[:300]
    result = json.loads(html.unescape(found.group(1)))
    assert result["panels"] == [[False, True], [True, False]]
    assert result["series"] == [True, False, True, False]
    assert result["theory"] == ["none", "inline"]  # six lines with theory: hidden until they are asked for
    assert result["tip"].startswith("line 1\nm_h = 4\n") and "slope −1.10" in result["tip"]
    assert set(result["edges"]) == {"2"}
