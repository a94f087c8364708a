/** *Rates*: slopes of a stored study with their intervals; the singular values of a kernel, and how fast they fall. */

import { fill, h } from "../dom";
import { heat } from "../heat";
import { jobView } from "../jobview";
import { lines } from "../lines";
import { short, whole } from "../numbers";
import { field, footing, proved, quoted, type Room } from "../room";
import type { State } from "../state";
import { table } from "../table";

const KERNELS = ["exp(-3*(u-v)**2)", "exp(-abs(u-v))", "1/(1+(u-v)**2)", "cos(6*u*v)", "min(u,v)"];
const TONES = ["thin", "error", "good", "second", "accent", "weak"];

export const rates: Room = { name: "rates", title: "Rates", line: "how fast errors fall with the size", open };

function open(host: HTMLElement, link: State, keep: (state: State) => void): void {
  const state: State = { kernel: KERNELS[0], ...link };
  const foot = footing();
  const [result, study] = [h("div"), h("div")];
  const kernel = h("input.mono", { value: state.kernel, maxlength: 400, spellcheck: "false", oninput: () => changed() });
  const view = jobView("Decompose", async () => {
    const last = await view.run("rates", { what: "kernel", kernel: state.kernel, nodes: 64 }, () => undefined);
    if (last) fill(result, values(last));
  });
  const stored = jobView("Show the stored study", async () => {
    const last = await stored.run("rates", { what: "study", kernel: "", nodes: 64 }, () => undefined);
    if (last) fill(study, slopes(last.study));
  });
  function changed(): void {
    state.kernel = kernel.value;
    keep(state);
    foot.set(`certiformer rates pod ${quoted(state.kernel)} --nodes 64`, "rates", state);
  }
  kernel.addEventListener("keydown", (event) => event.key === "Enter" && view.button.click());
  fill(host,
    proved("nothing on this page is proved: slopes are measured, with intervals, beside the exponents of theories."),
    h("section", null, h("h2", null, "A kernel"), h("p", null, "How much of a kernel ρ(u, v) can a head of size m know? Its singular values say so: what they leave beyond m is the smallest error that any m products can reach."),
      h("div.inputs.narrow", null, field("ρ(u, v) =", kernel), h("p.examples", null, "Try ", ...KERNELS.map((text) => h("button.quiet", { onclick: () => { kernel.value = text; changed(); } }, text))),
        h("div.row", null, view.button, view.stop), view.status), result),
    h("section", null, h("h2", null, "A stored study"), h("p", null, "Name its folder when you start: ", h("code", null, "certiformer explore runs/rates-jackson")), h("div.row", null, stored.button, stored.stop), stored.status, study),
    foot.element);
  changed();
}

function values(last: any): HTMLElement {
  const known = Math.max(last.resolved, 1);
  const x = last.values.slice(0, known).map((_: unknown, i: number) => i + 1);
  const decay = last.decay;
  const fitted = decay ? x.map((m: number) => decay.constant * m ** -decay.alpha) : null;
  const series = [
    { label: "singular value", values: last.values.slice(0, known), tone: "thin", points: true },
    { label: "left beyond m", values: last.tails.slice(0, known), tone: "error", points: true },
  ];
  const chart = lines({
    title: "Singular values, and the error they leave",
    caption: `${last.measured}; ${whole(last.resolved)} values are resolved.${last.note ? ` ${last.note[0].toUpperCase()}${last.note.slice(1)}.` : ""}`,
    x, xLabel: "m", logX: true, logY: true, height: 280,
    series: fitted ? [...series, { label: `m^−${short(decay.alpha, 3)}`, values: fitted, tone: "accent", dash: [6, 4] }] : series,
  });
  const side = (label: string) => ({ label, low: 0, high: 1, low_text: "0", high_text: "1" });
  const flat = last.grid.flat().filter((v: number | null) => v !== null) as number[];
  const map = heat({ title: "The kernel", caption: "At the nodes of the quadrature.", x: side("v"), y: side("u"), values: last.grid, low: Math.min(...flat), high: Math.max(...flat), unit: "ρ", palette: "value" });
  const sentence = decay && decay.straightness >= 0.98
    ? `Measured decay: the values fall like m^−${short(decay.alpha, 4)}, interval ${short(decay.interval[0], 4)} to ${short(decay.interval[1], 4)} over m = ${decay.window[0]} to ${decay.window[1]}. An error in the root mean square then falls like m^−${short(decay.alpha - 0.5, 3)}.`
    : "The values follow no power of m: they fall faster, or too few of them are known. The dashed line is the nearest power.";
  return h("div", null, h("p.sentence", null, sentence), h("div.columns", null, chart.element, map.element));
}

function slopes(study: any): HTMLElement {
  const series = (study.series ?? []).filter((s: any) => s.x?.length > 1);
  const charts = series.slice(0, 12).map((s: any, i: number) => lines({
    title: s.name, caption: s.note ?? "", x: s.x, xLabel: s.x_label ?? "size", logX: true, logY: true, height: 200, broad: false,
    series: [{ label: "mean squared error", values: s.error_mse ?? [], tone: TONES[i % TONES.length], points: true }],
  }).element);
  const interval = (pair: any) => (pair ? `${short(pair[0], 3)} to ${short(pair[1], 3)}` : "–");
  return h("div", null, h("p.sentence", null, study.question ?? study.study),
    table("Measured slopes", [
      { name: "series", cell: (s: any) => s.name, by: (s) => s.name },
      { name: "slope of MSE", cell: (s) => short(s.slope_mse, 4), by: (s) => s.slope_mse ?? null, number: true },
      { name: "interval", cell: (s) => interval(s.slope_interval), number: true },
      { name: "theories", cell: (s) => Object.entries(s.theory ?? {}).map(([name, value]) => `${name} ${short(value as number, 3)}`).join(", ") },
      { name: "excluded", cell: (s) => (Array.isArray(s.excluded) ? s.excluded.join(", ") : "") },
    ], study.series ?? []),
    h("ul", null, ...(study.findings ?? []).map((text: string) => h("li", null, text))),
    h("div.figures", null, ...charts));
}
