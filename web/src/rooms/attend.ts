/** *Attend*: one head as a matrix one can touch; the sharpness on a slider, the proved leak beside the measured one. */

import { fill, h } from "../dom";
import { jobView } from "../jobview";
import { type Matrix, matrix } from "../matrix";
import { bound, short } from "../numbers";
import { field, footing, proved, type Room } from "../room";
import type { State } from "../state";
import { table } from "../table";

const PROGRAMS: Record<string, { name: string; says: string }> = {
  codes: { name: "Position codes", says: "Sinusoidal codes, turned by one step: every position looks at the one before it." },
  reversal: { name: "Reversal", says: "Sharp scores where i + j is the last position: the head copies the sequence backwards." },
  pooling: { name: "Pooling", says: "All scores equal: every position gets the mean of all tokens." },
  distances: { name: "Distances only", says: "The scores depend on i − j alone. With equal tokens all answers are equal, so the head cannot say where it is (wanted: position over length)." },
};
const DEFAULT: State = { program: "reversal", tokens: "1 2 3 4 5 6", sharpness: "4", attention: "soft", positions: "on" };

export const attend: Room = { name: "attend", title: "Attend", line: "where one head looks, and what that can and cannot do", open };

function open(host: HTMLElement, link: State, keep: (state: State) => void): void {
  const state = { ...DEFAULT, ...link };
  const foot = footing();
  const result = h("div");
  const says = h("p");
  const pick = (name: string, label: string, values: [string, string][]) => {
    const input = h("select", { "aria-label": label, onchange: () => { state[name] = input.value; changed(); } },
      ...values.map(([value, text]) => h("option", { value, selected: state[name] === value }, text)));
    return field(label, input);
  };
  const tokens = h("input.mono", { value: state.tokens, maxlength: 200, spellcheck: "false", onchange: () => { state.tokens = tokens.value; changed(); } });
  const slider = h("input", { type: "range", min: 0, max: 24, step: 0.25, value: state.sharpness, "aria-label": "sharpness of the scores" });
  const words = h("output.number", null, state.sharpness);
  slider.addEventListener("input", () => {
    state.sharpness = slider.value;
    words.textContent = slider.value;
    changed();
  });
  const view = jobView("Look", look);
  let drawn: { names: string; picture: ReturnType<typeof matrix> } | null = null;
  let answers: HTMLElement | null = null;
  let busy = false;
  let again = false;

  function changed(): void {
    keep(state);
    says.textContent = PROGRAMS[state.program]?.says ?? "";
    const theorem = { codes: "softmax_temperature_limit", reversal: "reversal", pooling: "uniform_pooling", distances: "relative_bias_not_universal" }[state.program] ?? "reversal";
    foot.set(`certiformer theorem ${theorem}`, "attend", state);
    if (drawn) void look();
  }

  async function look(): Promise<void> {
    if (busy) {
      again = true; // while the slider moves, the last state counts
      return;
    }
    busy = true;
    const numbers = state.tokens.split(/[\s,]+/).filter(Boolean).map(Number);
    const last = await view.run("attend", { program: state.program, tokens: numbers, sharpness: Number(state.sharpness), attention: state.attention, positions: state.positions }, () => undefined);
    busy = false;
    if (last) show(numbers, last);
    if (again) {
      again = false;
      void look();
    }
  }

  function show(numbers: number[], last: any): void {
    const names = numbers.map((x) => short(x));
    const data: Matrix = { title: "Weights of the head", caption: "A row is the position that looks, a column the token it looks at. Measured in float64.", rows: names, columns: names, values: last.weights };
    const verdict = h("div", null,
      h("p.sentence", null, capital(last.says), " ", last.proved === null ? "" : h("b.number", null, last.proved === "0" ? "0" : bound(last.proved, last.kind === "upper")), last.proved === null ? "" : "."),
      h("p", null, "Measured here, for these tokens: ", h("b.number", null, short(last.measured, 5)), "."),
      h("p.quiet", null, "Theorem: ", h("code", null, last.theorem)));
    const rows = numbers.map((x, i) => ({ i, x, answer: last.answers[i], wanted: last.wanted[i] }));
    const list = table("What every position answers", [
      { name: "position", cell: (r: any) => r.i + 1, by: (r) => r.i, number: true },
      { name: "token", cell: (r) => short(r.x), by: (r) => r.x, number: true },
      { name: "answer", cell: (r) => short(r.answer, 6), by: (r) => r.answer, number: true },
      { name: "wanted", cell: (r) => short(r.wanted, 6), by: (r) => r.wanted, number: true },
    ], rows);
    if (drawn && drawn.names === names.join() && answers) {
      drawn.picture.update(last.weights);
      fill(answers, h("div.claim.good", null, verdict), list);
      return;
    }
    drawn = { names: names.join(), picture: matrix(data) };
    answers = h("div", null, h("div.claim.good", null, verdict), list);
    fill(result, h("div.columns", null, drawn.picture.element, answers));
  }

  fill(host,
    proved("the bound in the box below, by the theorem it names, for all tokens no larger than these. The matrix and the word ", h("i", null, "measured"), " are float64."),
    h("div.controls", null,
      h("div.inputs", null,
        pick("program", "program", Object.entries(PROGRAMS).map(([value, about]) => [value, about.name])), says,
        field("tokens", tokens, "2 to 16 numbers"),
        field("sharpness", slider), h("p", null, "sharpness ", words, h("span.quiet", null, " (one over the temperature)")),
        h("div.row", null, pick("positions", "positions", [["on", "on"], ["off", "off"]]), pick("attention", "attention", [["soft", "soft"], ["hard", "hard"]])),
        h("div.row", null, view.button, view.stop), view.status),
      h("div", null, h("p.quiet", null, "Press Look once; then the slider moves the matrix as you drag it."))),
    result, foot.element);
  changed();
}

function capital(text: string): string {
  return text[0].toUpperCase() + text.slice(1);
}
