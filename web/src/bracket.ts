/** The proved bracket of the largest error, on a scale from zero; it narrows while a build runs. */

import { fill, h, svg } from "./dom";
import { short } from "./numbers";

export interface Bracket {
  element: HTMLElement;
  set: (change: { lower?: number | null; upper?: number | null; epsilon?: number }) => void;
}

export function bracket(epsilon: number): Bracket {
  const state: { lower: number | null; upper: number | null; epsilon: number } = { lower: null, upper: null, epsilon };
  const drawing = h("div.track");
  const words = h("p.number-line", { role: "status", "aria-live": "polite" });
  const draw = () => {
    const { lower, upper } = state;
    const most = 1.12 * Math.max(state.epsilon, lower ?? 0, upper ?? 0);
    const at = (value: number) => (1000 * value) / most;
    const open = upper === null;
    fill(drawing, svg("svg", { viewBox: "0 0 1000 60", preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("rect", { x: 0, y: 18, width: 1000, height: 20, class: "all", rx: 6 }),
      svg("rect", { x: at(lower ?? 0), y: 18, width: Math.max(at(upper ?? most) - at(lower ?? 0), 4), height: 20, class: open ? "known open" : "known" }),
      svg("line", { x1: at(state.epsilon), x2: at(state.epsilon), y1: 6, y2: 50, class: "mark" })));
    fill(words, h("span", null, lower === null ? "no lower end yet" : `${short(lower)} ≤`), " largest error ",
      h("span", null, open ? "(no upper end proved yet)" : `≤ ${short(upper)}`), h("span.quiet", null, `   tolerance ε = ${short(state.epsilon)}, the dashed line`));
  };
  draw();
  return {
    element: h("div.bracket", null, drawing, words),
    set: (change) => {
      Object.assign(state, change);
      draw();
    },
  };
}
