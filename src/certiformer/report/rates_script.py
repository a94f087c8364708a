"""The script of the page of a study, as text. Without it the page shows everything, only nothing can be switched.

It reads nothing but attributes of the page and writes texts as texts (`textContent`), never as HTML.
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
