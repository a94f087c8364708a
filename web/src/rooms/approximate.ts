/** *Approximate*: type a formula, drag box and tolerance, watch a block train and its proof close, then break it. */

import { getBlob } from "../api";
import { bracket } from "../bracket";
import { type BoxPicture, boxes } from "../boxes";
import { candidateTable } from "../candidates";
import { eachFrame, fill, h } from "../dom";
import { save } from "../download";
import { boxOf, boxText, sketchOf, type Side } from "../formula";
import { type HeatPicture, heat } from "../heat";
import { jobView } from "../jobview";
import { lines } from "../lines";
import { formulaMath } from "../math";
import { short, whole } from "../numbers";
import { picture } from "../pictures";
import { proofTree } from "../proof";
import { field, footing, proved, quoted, type Room } from "../room";
import { rememberRun } from "../session";
import type { State } from "../state";

const DEFAULT: State = { formula: "sin(x1)+sin(x2)", box: "[0,2*pi]^2", epsilon: "0.1", method: "auto" };
const METHODS = ["auto", "fit", "gather", "ridge", "voronoi", "temperatures", "ridge-temperatures", "sigmoid-heads"];
const EXAMPLES = ["sin(x1)+sin(x2)", "exp(-x1)*sin(3*x1)", "x1*x2", "abs(x1)", "tanh(4*x1)", "max(x1,x2)"];
const SKETCH = 96;

export const approximate: Room = { name: "approximate", title: "Approximate", line: "a formula becomes a transformer with a proof", open };

function open(host: HTMLElement, link: State, keep: (state: State) => void): void {
  const state = { ...DEFAULT, ...link };
  const formula = h("input.mono", { value: state.formula, spellcheck: "false", autocomplete: "off", maxlength: 2000 });
  const box = h("input.mono", { value: state.box, spellcheck: "false", autocomplete: "off", maxlength: 300 });
  const epsilon = h("input.mono", { value: state.epsilon, spellcheck: "false", autocomplete: "off", maxlength: 100 });
  const slider = h("input", { type: "range", min: -4, max: 0, step: 0.05, "aria-label": "tolerance, from 0.0001 to 1" });
  const method = h("select", null, ...METHODS.map((name) => h("option", { value: name, selected: name === state.method }, name)));
  const shown = h("p.formula", { "aria-hidden": "true" });
  const sketch = h("div.sketch");
  const ends = h("div.ends-sliders");
  const result = h("div.result");
  const foot = footing();
  let sketched: HeatPicture | null = null;

  const view = jobView("Build and prove", build);

  const changed = eachFrame(() => {
    state.formula = formula.value;
    state.box = box.value;
    state.epsilon = epsilon.value;
    state.method = method.value;
    keep(state);
    const how = state.method === "auto" ? "" : ` --method ${state.method}`;
    foot.set(`certiformer build ${quoted(state.formula)} --on ${quoted(state.box)} --eps ${quoted(state.epsilon)}${how}`, "approximate", state);
    formulaMath(shown, state.formula);
    draw();
  });

  let drawnAs = "";
  function draw(): void {
    const target = sketchOf(state.formula);
    const sides = boxOf(state.box);
    if (!target || !sides || target.variables > sides.length) {
      drawnAs = "";
      fill(sketch, h("p.quiet", null, !sides ? "The box is written as [0,1]^2 or [0,1]x[-1,2]." : "A formula in x1, x2, … is expected; this sketch waits for it."));
      return;
    }
    const middle = sides.map((side) => (side.low + side.high) / 2);
    if (sides.length === 1) {
      drawnAs = "";
      const x = Array.from({ length: 400 }, (_, i) => sides[0].low + ((sides[0].high - sides[0].low) * i) / 399);
      fill(sketch, lines({ title: "The target", caption: "", x, xLabel: "x1", height: 200, series: [{ label: "f", values: x.map((v) => target.evaluate([v])), tone: "thin" }] }).element);
      return;
    }
    const values: number[][] = [];
    let [low, high] = [Infinity, -Infinity];
    const point = [...middle];
    for (let r = 0; r < SKETCH; r += 1) {
      point[1] = sides[1].low + ((sides[1].high - sides[1].low) * (r + 0.5)) / SKETCH;
      const row = new Array<number>(SKETCH);
      for (let c = 0; c < SKETCH; c += 1) {
        point[0] = sides[0].low + ((sides[0].high - sides[0].low) * (c + 0.5)) / SKETCH;
        const value = target.evaluate(point);
        row[c] = value;
        if (Number.isFinite(value)) [low, high] = [Math.min(low, value), Math.max(high, value)];
      }
      values.push(row);
    }
    const change = { x: sides[0], y: sides[1], values, low, high };
    if (drawnAs === "map" && sketched) sketched.update(change);
    else {
      const slice = sides.length > 2 ? "A slice through the middle of the box." : "A sketch by this page; it decides nothing.";
      sketched = heat({ title: "The target", caption: slice, unit: "f", palette: "value", ...change });
      fill(sketch, sketched.element);
      drawnAs = "map";
    }
  }

  function sliders(): void {
    const sides = boxOf(box.value);
    fill(ends, ...(sides ?? []).slice(0, 2).map((side, i) => {
      const [input, words] = [h("input", { type: "range", min: -10, max: 10, step: 0.1, value: side.high, "aria-label": `upper end of ${side.label}` }), h("small.number", null, side.high_text)];
      input.addEventListener("input", () => {
        const now = boxOf(box.value) ?? sides!;
        const value = Math.max(Number(input.value), now[i].low + 0.1);
        const text = String(Number(value.toFixed(3)));
        box.value = boxText(now.map((s, j): Side => (j === i ? { ...s, high: value, high_text: text } : s)));
        words.textContent = text;
        changed();
      });
      return h("label.field", null, h("span", null, `${side.label} up to`), input, words);
    }));
  }

  slider.value = String(Math.log10(Number(epsilon.value)) || -1);
  slider.addEventListener("input", () => {
    epsilon.value = String(Number((10 ** Number(slider.value)).toPrecision(2)));
    changed();
  });
  for (const input of [formula, box, epsilon, method]) input.addEventListener("input", changed);
  box.addEventListener("change", sliders);
  formula.addEventListener("keydown", (event) => event.key === "Enter" && build());

  async function build(): Promise<void> {
    const tolerance = sketchOf(state.epsilon)?.evaluate([]) ?? Number(state.epsilon);
    const ours = bracket(tolerance || 1);
    const candidates: any[] = [];
    const [list, training, surface, proof, after] = [h("div"), h("div"), h("div"), h("div.figures"), h("div")];
    const losses: number[] = [];
    let curve: ReturnType<typeof lines> | null = null;
    let trained: { kind: number; line?: ReturnType<typeof lines>; map?: HeatPicture } | null = null;
    let parts: BoxPicture[] = [];
    let counts: number[] = [];
    let live: BoxPicture | null = null;
    fill(result, h("section", null, h("h2", null, "The bracket"), ours.element), h("section", null, h("h2", null, "The proof"), proof),
      h("div.columns", null, h("section", null, h("h2", null, "Candidates by size"), list), h("section", null, h("h2", null, "Training"), training, surface)), after);
    put("The kernel's boxes appear here once there is something to prove.");

    function put(words: string): void {
      fill(proof, h("p.quiet", null, words));
    }

    const last = await view.run("approximate", { formula: state.formula, box: state.box, epsilon: state.epsilon, method: state.method, seconds: 30 }, (event) => {
      if (event.event === "planned") {
        candidates.push(event.candidate);
        candidates.sort((a, b) => (a.nonzero ?? Infinity) - (b.nonzero ?? Infinity));
        fill(list, candidateTable(candidates));
      } else if (event.event === "training") {
        losses.push(event.error ?? NaN);
        const x = losses.map((_, i) => i + 1);
        if (!curve) {
          curve = lines({ title: "Sampled error over the goal", caption: "Below 1 the goal is reached on samples; samples prove nothing.", x, xLabel: "moment", logY: true, height: 160, series: [{ label: "error / goal", values: losses, tone: "error" }, { label: "goal", values: x.map(() => 1), tone: "accent", dash: [6, 4] }] });
          fill(training, curve.element);
        } else curve.update(x, [losses, x.map(() => 1)]);
        if (event.values) trained = showError(surface, trained, event);
      } else if (event.event === "lower") ours.set({ lower: event.lower });
      else if (event.event === "boxes") {
        const sides = boxOf(state.box) ?? [];
        const part = { axes: sides.slice(0, event.dimension), tree: event.tree, leaves: event.leaves };
        if (!live) {
          live = boxes("The search cuts the box", "Where a piece cannot be bounded yet it is halved.", part, Infinity);
          fill(proof, live.element);
        } else live.show(part, Infinity);
      } else if (event.event === "proof") {
        parts = event.parts.map((part: any, i: number) => boxes(event.parts.length > 1 ? `Boxes of part ${i + 1}: ${part.axes.map((a: Side) => a.label).join(", ")}` : "The boxes of the proof",
          `${whole(part.leaves)} boxes; together they cover everything. The darker, the larger.`, part, 0));
        counts = event.parts.map((part: any) => part.leaves);
        if (parts.length) fill(proof, ...parts.map((part) => part.element));
        else put("This proof needs no boxes: a theorem or the pieces of the function settle it.");
      } else if (event.event === "checked") {
        let left = event.done;
        parts.forEach((part, i) => {
          part.close(Math.max(Math.min(left, counts[i]), 0));
          left -= counts[i];
        });
      }
    });
    if (!last) return;
    const report = last.report;
    if (last.kept) rememberRun(last.run);
    ours.set({ lower: report.lower === null ? null : Number(report.lower), upper: report.upper === null ? null : Number(report.upper) });
    if (last.boxes.length) fill(proof, ...last.boxes.map((part: any, i: number) => boxes(last.boxes.length > 1 ? `Boxes of part ${i + 1}: ${part.axes.map((a: Side) => a.label).join(", ")}` : "The boxes of the proof",
      `${whole(part.leaves)} boxes, all confirmed by the kernel.`, part).element));
    if (report.candidates.length) fill(list, candidateTable(report.candidates));
    fill(after, finished(last));
  }

  fill(host,
    proved("when the verdict says certified, the transformer is within ε of f at every real point of the box; the kernel has derived every step. Sketches, losses and surfaces are samples."),
    h("div.controls", null,
      h("div.inputs", null,
        field("f =", formula), shown,
        h("p.examples", null, "Try ", ...EXAMPLES.map((text) => h("button.quiet", { onclick: () => {
          formula.value = text;
          box.value = text.includes("x2") ? (text.startsWith("sin") ? "[0,2*pi]^2" : "[-1,1]^2") : text.startsWith("exp") ? "[0,2]" : "[-1,1]";
          sliders();
          changed();
        } }, text))),
        field("on the box", box), ends,
        h("div.row", null, field("ε =", epsilon), field("drag", slider), field("method", method)),
        h("div.row", null, view.button, view.stop), view.status),
      sketch),
    result, foot.element);
  sliders();
  changed();

  function finished(last: any): HTMLElement {
    const report = last.report;
    const tone = last.word === "certified" ? "good" : report.outcome === "proved" ? "weak" : "bad";
    const pictures = report.pictures.map((data: any) => picture(data)).filter(Boolean);
    return h("div", null,
      h(`div.claim.${tone}` as "div.claim", null, h("span.badge", null, last.word), h("p.sentence", null, last.claim), report.outcome !== "proved" && report.reason ? h("p", null, report.reason) : null),
      last.kept && h("p", null, h("button", { onclick: async () => save(await getBlob(`api/runs/${last.run}`), "certiformer-run.zip") }, "Download the run folder"), h("span.quiet", null, "  unpack it and ask certiformer check")),
      report.proof && h("section", null, h("h2", null, "The proof tree"), proofTree(report.proof)),
      last.kept && last.weights.length ? breaking(last) : null,
      h("section", null, h("h2", null, "Pictures"), h("p.quiet", null, "Samples in float64, to look at."), h("div.figures", null, ...pictures)));
  }
}

function showError(host: HTMLElement, before: { kind: number; line?: ReturnType<typeof lines>; map?: HeatPicture } | null, event: any) {
  const caption = "One component of the target, on its own scale from −1 to 1; in units of the goal. Samples.";
  if (event.inputs === 1) {
    const x = event.values.map((_: unknown, i: number) => -1 + (2 * i) / (event.values.length - 1));
    if (before?.kind === 1) {
      before.line!.update(x, [event.values]);
      return before;
    }
    const line = lines({ title: "The error of the block in training", caption, x, xLabel: "u", height: 160, series: [{ label: "error / goal", values: event.values, tone: "error" }] });
    fill(host, line.element);
    return { kind: 1, line };
  }
  const values = event.values.map((row: (number | null)[]) => row.map((v) => (v === null ? null : Math.abs(v))));
  const high = Math.max(1e-9, ...values.flat().filter((v: number | null) => v !== null));
  const side = (label: string): Side => ({ label, low: -1, high: 1, low_text: "−1", high_text: "1" });
  if (before?.kind === 2) {
    before.map!.update({ values, high });
    return before;
  }
  const map = heat({ title: "The error of the block in training", caption, x: side("u1"), y: side("u2"), values, low: 0, high, unit: "|error| / goal", palette: "error" });
  fill(host, map.element);
  return { kind: 2, map };
}

/** The slider that breaks one weight, and what the kernel says. */
function breaking(last: any): HTMLElement {
  const weights = last.weights as { tensor: string; at: number; value: number }[];
  const chosen = h("select", null, ...weights.map((w, i) => h("option", { value: i }, `${w.tensor}[${w.at}] = ${short(w.value)}`)));
  const slider = h("input", { type: "range", min: -1, max: 1, step: 0.01, value: 0, "aria-label": "how far the weight is moved" });
  const words = h("span.number", null, "0");
  const verdict = h("div");
  const view = jobView("Ask the kernel", ask);
  slider.addEventListener("input", () => (words.textContent = short(Number(slider.value))));
  slider.addEventListener("change", ask);
  async function ask(): Promise<void> {
    const weight = weights[Number(chosen.value)];
    const answer = await view.run("break", { run: last.run, tensor: weight.tensor, at: weight.at, by: Number(slider.value) }, () => undefined);
    if (!answer) return;
    const drawn = answer.pictures.map((data: any) => picture(data)).filter(Boolean);
    fill(verdict,
      h(`div.claim.${answer.accepted ? "good" : "bad"}` as "div.claim", null, h("span.badge", null, answer.accepted ? "accepted" : "refused"),
        h("p", null, answer.accepted ? "The old proof still holds for these weights." : `The kernel refuses the old proof: ${answer.reason}.`),
        answer.witness && h("p", null, answer.witness.refutes ? "And the claim itself is false: " : "The largest error found: ",
          `at (${answer.witness.point.map((x: number) => short(x, 6)).join(", ")}) it is at least ${short(Number(answer.witness.error))}`, answer.witness.refutes ? ", proved in exact arithmetic." : ", which is within ε.")),
      h("div.figures", null, ...drawn));
  }
  return h("section.break", null, h("h2", null, "Break one weight"),
    h("p.quiet", null, "Every hash is made anew, so the folder looks untouched. Only the mathematics can tell."),
    h("div.row", null, field("weight", chosen), field("moved by", slider), words, view.button, view.stop), view.status, verdict);
}
