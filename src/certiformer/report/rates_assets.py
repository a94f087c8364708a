"""What only the page of a study needs: styles of series, charts, graphs and heat maps, and a script.

Without the script the page shows everything, only nothing can be switched. It reads nothing but attributes of the page
and writes texts as texts (`textContent`), never as HTML.
"""

SCRIPT = r"""
(function () {
  "use strict";
  var root = document.documentElement;
  root.classList.add("js");
  function all(place, what) { return Array.prototype.slice.call(place.querySelectorAll(what)); }
  function pressed(button, on) { button.setAttribute("aria-pressed", on ? "true" : "false"); }

  // --- which series, which error, which lines ---
  function show(figure, number, on) {
    all(figure, '.s[data-s="' + number + '"]').forEach(function (g) { g.toggleAttribute("hidden", !on); });
    all(figure, '.item[data-s="' + number + '"]').forEach(function (b) { pressed(b, on); });
  }
  function focus(figure, number) {
    figure.classList.toggle("focusing", number !== null);
    all(figure, ".s").forEach(function (g) {
      g.classList.toggle("focus", number !== null && g.getAttribute("data-s") === number);
    });
  }
  all(document, "figure").forEach(function (figure) {
    all(figure, ".item").forEach(function (button) {
      var number = button.getAttribute("data-s");
      button.addEventListener("click", function () {
        show(figure, number, button.getAttribute("aria-pressed") !== "true");
        focus(figure, null);
      });
      ["pointerenter", "focus"].forEach(function (name) {
        button.addEventListener(name, function () {
          if (button.getAttribute("aria-pressed") === "true") { focus(figure, number); }
        });
      });
      ["pointerleave", "blur"].forEach(function (name) {
        button.addEventListener(name, function () { focus(figure, null); });
      });
    });
    all(figure, "[data-all]").forEach(function (button) {
      button.addEventListener("click", function () {
        all(figure, ".item").forEach(function (item) {
          show(figure, item.getAttribute("data-s"), button.getAttribute("data-all") === "true");
        });
      });
    });
    all(figure, "[data-show]").forEach(function (box) {
      box.addEventListener("change", function () {
        figure.classList.toggle(box.getAttribute("data-show"), box.checked);
      });
    });
    var switches = all(figure, "button[data-error]");
    function choose(error) {
      switches.forEach(function (button) { pressed(button, button.getAttribute("data-error") === error); });
      all(figure, ".panel").forEach(function (panel) {
        panel.toggleAttribute("hidden", panel.getAttribute("data-error") !== error);
      });
    }
    switches.forEach(function (button) {
      button.addEventListener("click", function () { choose(button.getAttribute("data-error")); });
    });
    if (switches.length) { choose(switches[0].getAttribute("data-error")); }

    // --- where one point looks, in both graphs at once ---
    var chosen = null;
    function look(t) {
      chosen = t === chosen ? null : t;
      all(figure, ".node").forEach(function (node) {
        node.classList.toggle("chosen", node.getAttribute("data-t") === chosen);
      });
      all(figure, ".edge-fill").forEach(function (edge) {
        edge.toggleAttribute("hidden", chosen !== null && edge.getAttribute("data-from") !== chosen);
      });
    }
    all(figure, ".node").forEach(function (node) {
      node.addEventListener("click", function () { look(node.getAttribute("data-t")); });
      node.addEventListener("keydown", function (event) {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); look(node.getAttribute("data-t")); }
      });
    });
  });

  // --- values under the pointer ---
  var tip = document.createElement("div");
  tip.id = "tip";
  tip.setAttribute("hidden", "");
  document.body.appendChild(tip);
  function nearest(plot, x, y) {
    var best = null, least = 30;
    all(plot, ".pt").forEach(function (point) {
      var box = point.getBoundingClientRect();
      if (!box.width && !box.height && !box.x && !box.y) { return; }
      var away = Math.hypot(box.x + box.width / 2 - x, box.y + box.height / 2 - y);
      if (away < least) { least = away; best = point; }
    });
    return best;
  }
  function place(event) {
    var target = event.target instanceof Element ? event.target : null;
    var plot = target && target.closest(".chart .plot");
    var found = (plot && nearest(plot, event.clientX, event.clientY)) || (target && target.closest("[data-tip]"));
    tip.toggleAttribute("hidden", !found);
    if (!found) { return; }
    tip.textContent = found.getAttribute("data-tip");
    var left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 6);
    var top = event.clientY - tip.offsetHeight - 12;
    tip.style.left = Math.max(6, left) + "px";
    tip.style.top = (top < 6 ? event.clientY + 18 : top) + "px";
  }
  ["pointermove", "pointerdown"].forEach(function (name) { document.addEventListener(name, place, { passive: true }); });
  document.addEventListener("scroll", function () { tip.setAttribute("hidden", ""); }, { passive: true });
})();
"""


_LIGHT = ("1666a8", "c9541a", "1d7a4d", "a1308b", "8a6a12", "5b4bb5", "b3312c", "0f7f86", "6b5d54", "3f4a54")
_DARK = ("6db3f2", "f59b62", "59c48d", "e585d0", "d9b44a", "a99bf2", "f0776f", "4fc4cb", "c2b3a8", "b4c0ca")


def _colours(values: tuple[str, ...]) -> str:
    return "".join(f"--c{place}:#{value};" for place, value in enumerate(values))


_SERIES = "".join(f".s{place}{{--tone:var(--c{place})}}" for place in range(len(_LIGHT)))

CSS = (
    f""":root{{{_colours(_LIGHT)}--t0:#b3312c;--t1:#1d2126;--t2:#1d7a4d;--t3:#5b4bb5;--t4:#8a6a12;--t5:#0f7f86}}
@media (prefers-color-scheme:dark){{:root{{{_colours(_DARK)}
--t0:#f0776f;--t1:#e6e3dc;--t2:#59c48d;--t3:#a99bf2;--t4:#d9b44a;--t5:#4fc4cb}}}}
{_SERIES}
.t0{{--theory:var(--t0);--dash:2 4}}.t1{{--theory:var(--t1);--dash:9 5}}.t2{{--theory:var(--t2);--dash:7 3 2 3}}
.t3{{--theory:var(--t3);--dash:4 3}}.t4{{--theory:var(--t4);--dash:10 3}}.t5{{--theory:var(--t5);--dash:3 3}}"""
    + """
.d1{--stroke:7 4}.d2{--stroke:2 4}
.chart .plot{overflow:visible}.chart svg{overflow:hidden}
.grid{stroke:var(--line);stroke-width:1}
.s .line{stroke:var(--tone);stroke-width:1.4;stroke-dasharray:var(--stroke,none)}
.s .pt{stroke:var(--tone);stroke-width:7;stroke-linecap:round}
.s .pt.zero{stroke-width:9;stroke-opacity:.35}.s .pt.ghost{stroke-opacity:0}
.s .fitline{stroke:var(--tone);stroke-width:4;stroke-opacity:.45}
.s .wedge{fill:var(--tone);fill-opacity:.13;stroke:none}
.s .theoryline{stroke:var(--theory);stroke-width:1.6;stroke-dasharray:var(--dash)}
.s .hit{stroke:transparent;stroke-width:12;pointer-events:stroke}
.rates .theoryline,.rates .fitline,.rates .wedge,.rates .theory-keys{display:none}
.rates.theory .theoryline,.rates.fit .fitline,.rates.fit .wedge{display:inline}
.rates.theory .theory-keys{display:block}
.rates .focus .theoryline{display:inline}
.focusing .s:not(.focus){opacity:.18}
[hidden]{display:none!important}
.err{margin:.5rem 0 .4rem;font-size:.85rem}
.items{display:flex;flex-wrap:wrap;gap:.1rem .3rem;margin:.6rem 0 0 3.2rem}
.item,.switch button{font:inherit;font-size:.82rem;color:inherit;background:none;border:1px solid transparent;
border-radius:.35rem;padding:.12rem .45rem;cursor:pointer;text-align:left;overflow-wrap:anywhere}
.item:hover,.item:focus-visible{border-color:var(--line)}.item[aria-pressed=false]{opacity:.4;text-decoration:line-through}
.item svg,.tkey svg{width:1.75rem;height:.65rem;margin-right:.4rem;vertical-align:middle}
.item .swatch{stroke:var(--tone);stroke-width:3;stroke-dasharray:var(--stroke,none)}
.tkey .swatch{stroke:var(--theory);stroke-width:2;stroke-dasharray:var(--dash)}
.tkey,.mark{margin-right:1.1rem;font-size:.85rem}.theory-keys{margin:.5rem 0 0 3.4rem}
.tools{display:none}.js .tools{display:flex;flex-wrap:wrap;gap:.5rem 1.2rem;align-items:center;font-size:.88rem;
margin:.2rem 0 .4rem}
.switch{display:inline-flex;border:1px solid var(--line);border-radius:.4rem;overflow:hidden}
.switch button{border-radius:0;padding:.2rem .7rem}
.switch button[aria-pressed=true]{background:var(--accent);color:var(--card)}
.js .item:focus-visible,.switch button:focus-visible,.node:focus-visible circle{outline:2px solid var(--accent)}
#tip{position:fixed;z-index:9;pointer-events:none;white-space:pre-line;background:var(--ink);color:var(--page);
border-radius:.4rem;padding:.35rem .6rem;font-size:.82rem;max-width:18rem;overflow-wrap:anywhere}
.slopes th{white-space:normal;color:var(--ink);width:32%}.slopes td,.slopes th{border:0;padding:.35rem .6rem 0 0}
.slopes .number{white-space:nowrap;width:11rem}
.slopes .verdict-row td{border-bottom:1px solid var(--line);color:var(--quiet);
font-size:.85rem;padding:.05rem 0 .35rem}
.iv{position:relative;height:1.75rem;background:linear-gradient(var(--line),var(--line)) 0 .7rem/100% 1px no-repeat}
.iv i{position:absolute;top:.45rem;height:.55rem;min-width:3px;background:var(--c0);opacity:.4;border-radius:.15rem}
.iv b{position:absolute;top:.4rem;width:.65rem;height:.65rem;margin-left:-.325rem;border-radius:50%;background:var(--c0)}
.iv u,.mark::before{width:0;height:0;border:.36rem solid transparent;border-top:0;border-bottom:.62rem solid var(--theory)}
.iv u{position:absolute;top:1rem;margin-left:-.36rem}
.iv u.out{border:0;width:.6rem;height:.6rem;margin-left:-.3rem;
background:linear-gradient(45deg,transparent 44%,var(--theory) 44% 56%,
transparent 56%),linear-gradient(-45deg,transparent 44%,var(--theory) 44% 56%,transparent 56%)}
.mark::before{content:"";display:inline-block;margin-right:.35rem}
.ivends{display:flex;justify-content:space-between;font-size:.78rem;color:var(--quiet)}
.graphs{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,15rem),1fr));gap:1rem}
.graph h4{margin:.2rem 0;font-size:.88rem;font-weight:500;color:var(--quiet)}.graph svg{width:100%;overflow:visible}
.edge-fill{fill:var(--c0);stroke:none}
.node{cursor:pointer}.node circle{fill:var(--card);stroke:var(--ink);stroke-width:.45}
.node text{font-size:3px;text-anchor:middle;dominant-baseline:central;fill:var(--ink)}
.node.chosen circle{fill:var(--c1);stroke:var(--c1)}.node.chosen text{fill:var(--card)}
.heat{width:auto;min-width:55%;border-collapse:separate;border-spacing:2px;font-size:.8rem}
.heat td,.heat th{border:0;padding:.2rem .45rem;text-align:center;overflow-wrap:normal;white-space:nowrap}
.heat th[scope=row]{text-align:right}.heat td{font-variant-numeric:tabular-nums;border-radius:.15rem}
.heat.small{border-spacing:0}.heat.small td{padding:0;min-width:.7rem;height:.7rem;border-radius:0}
.heat.small th{padding:0 .3rem;font-size:.65rem}
.values{width:auto;min-width:60%}.values td,.values th{padding-right:1.4rem}
.findings{margin:.8rem 0 0;padding-left:1.15rem}.findings li{margin:.45rem 0}
@media (max-width:34rem){.items,.theory-keys{margin-left:0}.item{padding:.25rem .4rem}
.slopes,.slopes tbody,.slopes tr,.slopes td,.slopes th{display:block;width:100%!important}.slopes td{text-align:left}}
@media print{.tools,#tip{display:none!important}.item[aria-pressed=false]{display:none}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
"""
)
