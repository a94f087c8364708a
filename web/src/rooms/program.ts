/** *Program*: RASP programs, Turing machines and automata in the weights of a transformer, one step at a time. */

import { getBlob } from "../api";
import { colour, eachFrame, fill, h, onResize } from "../dom";
import { save } from "../download";
import { jobView } from "../jobview";
import { matrix } from "../matrix";
import { short, whole } from "../numbers";
import { field, footing, proved, quoted, type Room } from "../room";
import type { State } from "../state";
import { table } from "../table";

const LIBRARY = ("copy length reverse shift sort sort_unique sort_freq min max most_frequent palindrome hist count count_less_freq majority parity sum mean " +
  "modular_sum prefix_modular_sum window_sum window_max frac_prevs pair_balance dyck1 dyck2 dyck3 shuffle_dyck1 shuffle_dyck2 shuffle_dyck3 is_first is_last " +
  "has_previous contains first_occurrence last_occurrence detect_pattern induction associative_recall count_after_delimiter mean_after_delimiter addition").split(" ");
const OWN = "mirror = Select(indices, length - indices - 1, EQ)\nAggregate(mirror, tokens)";
const DEFAULT: State = { what: "program", name: "reverse", text: "", vocab: "", length: "6", tokens: "", example: "beaver 4", input: "", steps: "200", cells: "40", table: "(ab)*" };

export const program: Room = { name: "program", title: "Program", line: "transformers that compute, one step at a time", open };

function open(host: HTMLElement, link: State, keep: (state: State) => void): void {
  const state = { ...DEFAULT, ...link };
  const [form, result] = [h("div"), h("div")];
  const foot = footing();
  const set = (name: string, value: string) => {
    state[name] = value;
    changed();
  };
  function changed(): void {
    keep(state);
    foot.set(command(state), "program", state);
  }
  const input = (name: string, label: string, hint = "", more: Record<string, any> = {}) => {
    const box = h("input.mono", { value: state[name], spellcheck: "false", maxlength: 400, ...more, oninput: () => set(name, box.value) });
    return field(label, box, hint);
  };
  const area = (name: string, label: string, hint: string) => {
    const box = h("textarea.mono", { rows: 6, spellcheck: "false", maxlength: 4000, oninput: () => set(name, box.value) }, state[name]);
    return field(label, box, hint);
  };
  const tabs = h("div.row", { role: "group", "aria-label": "What is compiled" }, ...[["program", "RASP program"], ["machine", "Turing machine"], ["automaton", "Automaton"]].map(([what, text]) =>
    h("button", { "data-what": what, onclick: () => { set("what", what); draw(); } }, text)));
  const views = {
    program: jobView("Compile and run", () => runProgram()),
    machine: jobView("Compile and run", () => runMachine()),
    automaton: jobView("Compile and run", () => runAutomaton()),
  };

  function draw(): void {
    for (const tab of tabs.querySelectorAll("button")) tab.setAttribute("aria-pressed", String(tab.dataset.what === state.what));
    const view = views[state.what as keyof typeof views] ?? views.program;
    const buttons = [h("div.row", null, view.button, view.stop), view.status];
    fill(result);
    if (state.what === "machine") {
      const pick = h("select", { onchange: () => { set("example", pick.value); draw(); } }, ...["beaver 2", "beaver 3", "beaver 4", "increment", "palindrome", "own"].map((name) => h("option", { value: name, selected: state.example === name }, name)));
      fill(form, field("machine", pick), state.example === "own" && area("text", "its table", "TOML with blank, start, halt and transitions, as for certiformer compile machine"),
        input("input", "input", "symbols of the tape, from the head to the right"), h("div.row", null, input("steps", "steps", "", { type: "number", min: 1, max: 20000 }), input("cells", "cells", "", { type: "number", min: 4, max: 2000 })), ...buttons);
    } else if (state.what === "automaton") {
      fill(form, area("table", "regular expression", "such as (ab)*, or the TOML table of an automaton"), input("input", "word"), ...buttons);
    } else {
      const pick = h("select", { onchange: () => { set("name", pick.value); if (!pick.value && !state.text) set("text", OWN); draw(); } },
        ...LIBRARY.map((name) => h("option", { value: name, selected: state.name === name }, name)), h("option", { value: "", selected: !state.name }, "your own program"));
      fill(form, field("program", pick, "42 programs of the library, or one of your own"),
        !state.name && h("p", null, h("button", { onclick: () => save(pythonOf(state.text), "program.py") }, "Save it as program.py for the command line")),
        !state.name && area("text", "your program", "Our language, read by our own parser; it is not run as Python. Known: tokens, indices, length, Select, Aggregate, SelectorWidth, Full, EQ, LT, …"),
        h("div.row", null, input("vocab", "tokens it knows", state.name ? "empty: the program's own" : "such as a,b,c"), input("length", "longest input", "", { type: "number", min: 1, max: 64 })),
        input("tokens", "input", "empty: an example"), ...buttons);
    }
    changed();
  }

  async function runProgram(): Promise<void> {
    const own = !state.name;
    const last = await views.program.run("program", { name: own ? null : state.name, program: own ? state.text : null, vocab: state.vocab, length: Math.round(Number(state.length)), tokens: state.tokens, dtype: "auto" }, () => undefined);
    if (last) fill(result, circuit(last));
  }
  async function runMachine(): Promise<void> {
    const last = await views.machine.run("machine", { kind: "machine", example: state.example, text: state.example === "own" ? state.text : "", input: state.input, steps: Math.round(Number(state.steps)), cells: Math.round(Number(state.cells)) }, () => undefined);
    if (last) fill(result, claim(last), machineView(last));
  }
  async function runAutomaton(): Promise<void> {
    const last = await views.automaton.run("machine", { kind: "automaton", example: "own", text: state.table, input: state.input, steps: 1, cells: 64 }, () => undefined);
    if (!last) return;
    const cells = ["start", ...last.input].map((symbol: string, i: number) => ({ symbol, state: last.states[i], i }));
    fill(result, claim(last), h("p.sentence", null, last.accepted ? "The word is accepted." : "The word is rejected.", h("span.quiet", null, ` ${whole(last.steps)} passes of the block.`)),
      table("The state after every symbol", [{ name: "symbol", cell: (c: any) => c.symbol }, { name: "state", cell: (c) => c.state }], cells));
  }

  fill(host, proved("for every input up to the stated length (or every configuration of the tape) the transformer gives exactly the answer of the program, in real arithmetic and in a run in the stored type."),
    tabs, h("div.inputs.narrow", null, form), result, foot.element);
  draw();
}

function command(state: State): string {
  if (state.what === "machine") return `certiformer compile machine machine.toml --tape ${state.cells}`;
  if (state.what === "automaton") return `certiformer compile automaton ${quoted(state.table)} --length 64`;
  const vocab = state.vocab ? ` --vocab ${quoted(state.vocab)}` : "";
  return state.name ? `certiformer compile ${state.name}${vocab} --length ${state.length}` : `certiformer compile program.py:program${vocab} --length ${state.length}`;
}

/** The program as a file for `certiformer compile`: the same expressions, spelled for Python. */
function pythonOf(text: string): string {
  const lines = text.trim().replace(/\b(EQ|NEQ|LT|LEQ|GT|GEQ|TRUE|FALSE)\b/g, "Comparison.$1").split("\n");
  const last = lines.pop() ?? "";
  const name = /^\s*([A-Za-z_]\w*)\s*=(?!=)/.exec(last);
  return ["from certiformer.rasp import *", "", ...lines, name ? last : `program = ${last}`, ...(name ? [`program = ${name[1]}`] : []), ""].join("\n");
}

/** A machine as the file that `certiformer compile machine` reads. */
function tomlOf(last: any): string {
  const list = (texts: string[]) => `[${texts.map((text) => JSON.stringify(text)).join(", ")}]`;
  const rules = last.rules.map((rule: string[]) => `  ${list(rule)},`);
  return [`blank = ${JSON.stringify(last.blank)}`, `start = ${JSON.stringify(last.start)}`, `halt = ${list(last.halt)}`, "transitions = [", ...rules, "]", ""].join("\n");
}

function claim(last: any): HTMLElement {
  return h(`div.claim.${last.word === "certified" ? "good" : "weak"}` as "div.claim", null, h("span.badge", null, last.word), h("p.sentence", null, last.claim), download(last));
}

function download(last: any): HTMLElement | null {
  return last.kept ? h("p.row", null, last.rules && h("button", { onclick: () => save(tomlOf(last), "machine.toml") }, "Save machine.toml"), h("button", { onclick: async () => save(await getBlob(`api/runs/${last.run}`), "certiformer-run.zip") }, "Download the run folder")) : null;
}

function circuit(last: any): HTMLElement {
  const data = last.circuit;
  const layers: string[] = data.sublayers;
  let [at, position] = [layers.length - 1, 0];
  const view = h("div");
  const words = h("p", { role: "status", "aria-live": "polite" });
  const layer = h("input", { type: "range", min: 0, max: layers.length - 1, value: at, "aria-label": "sub-layer" });
  const place = h("input", { type: "range", min: 0, max: data.example.tokens.length - 1, value: 0, "aria-label": "token" });
  const draw = () => {
    const rows = last.readings.filter((reading: any) => reading.after === layers[at]).map((reading: any) => ({ ...reading, cell: data.cells[reading.cell], about: data.steps.find((step: any) => step.writes.includes(reading.cell))?.text ?? "" }));
    words.textContent = `After ${layers[at]}, at token ${position + 1} (${data.example.tokens[position]})`;
    fill(view, table("What the residual stream holds here", [
      { name: "variable", cell: (r: any) => r.cell?.name ?? "", by: (r) => r.cell?.name ?? "" },
      { name: "means", cell: (r) => r.values[position] },
      { name: "holds", cell: (r) => short(r.held[position], 6), by: (r) => r.held[position], number: true },
      { name: "exactly", cell: (r) => short(r.wanted[position], 6), by: (r) => r.wanted[position], number: true },
      { name: "largest deviation", cell: (r) => short(r.deviation, 3), by: (r) => r.deviation, number: true },
      { name: "computed by", cell: (r) => r.about },
    ], rows));
  };
  layer.addEventListener("input", () => { at = Number(layer.value); draw(); });
  place.addEventListener("input", () => { position = Number(place.value); draw(); });
  draw();
  const tokens = data.example.tokens.map((token: string, i: number) => ({ token, out: data.example.outputs[i], i }));
  const heads = data.patterns.heads.map((head: any) => matrix({ title: head.name, caption: "", rows: head.maps[0].rows, columns: head.maps[0].columns, values: head.maps[0].values }).element);
  return h("div", null,
    h(`div.claim.${data.word === "certified" ? "good" : "weak"}` as "div.claim", null, h("span.badge", null, data.word), h("p.sentence", null, data.sentence), last.reason && h("p.quiet", null, capital(last.reason), "."), download(last)),
    table("In and out", [{ name: "position", cell: (t: any) => t.i + 1, number: true }, { name: "in", cell: (t) => t.token }, { name: "out", cell: (t) => t.out }], tokens),
    h("section", null, h("h2", null, "Step through the circuit"), field("sub-layer", layer), field("token", place), words, view),
    heads.length ? h("section", null, h("h2", null, "Where the heads look"), h("p.quiet", null, data.patterns.caption), h("div.figures", null, ...heads)) : null,
    h("details", null, h("summary", null, "The program as a graph"), h("pre", null, data.program)));
}

function capital(text: string): string {
  return text[0].toUpperCase() + text.slice(1);
}

/** The tape at work: every configuration of the run on a canvas, and one of them in detail. */
function machineView(last: any): HTMLElement {
  const moments: [string, number, string][] = last.moments;
  const tapes = tapesOf(last);
  let step = 0;
  let timer = 0;
  const canvas = h("canvas.tape", { role: "img", "aria-label": `the tape over ${whole(moments.length - 1)} steps, time runs down` });
  const detail = h("div", { role: "status" });
  const slider = h("input", { type: "range", min: 0, max: moments.length - 1, value: 0, "aria-label": "step" });
  const [low, high] = tapes.reach;
  const draw = eachFrame(() => {
    const width = high - low + 1;
    const rows = Math.min(moments.length, 400);
    const every = Math.max(1, Math.ceil(moments.length / rows));
    canvas.width = width;
    canvas.height = Math.ceil(moments.length / every);
    const brush = canvas.getContext("2d")!;
    brush.fillStyle = colour("card");
    brush.fillRect(0, 0, canvas.width, canvas.height);
    tapes.each((tape, at) => {
      if (at % every) return;
      const row = at / every;
      for (let cell = low; cell <= high; cell += 1) {
        const symbol = tape.get(cell) ?? last.blank;
        if (cell === moments[at][1]) brush.fillStyle = colour("error");
        else if (symbol === last.blank) continue;
        else brush.fillStyle = colour("thin");
        brush.fillRect(cell - low, row, 1, 1);
      }
    });
  });
  const tell = () => {
    const [state, cell, symbol] = moments[step];
    const tape = tapes.at(step);
    const row: string[] = [];
    for (let c = Math.max(low, cell - 12); c <= Math.min(high, cell + 12); c += 1) row.push(c === cell ? `[${tape.get(c) ?? last.blank}]` : (tape.get(c) ?? last.blank));
    const rule = last.rules.find((r: string[]) => r[0] === state && r[1] === symbol);
    fill(detail, h("p.mono", null, row.join(" ")), h("p", null, `Step ${whole(step)}: state ${state}, cell ${cell}, reads ${symbol}. `,
      rule ? `Rule: write ${rule[2]}, move ${rule[3]}, go to ${rule[4]}.` : "No rule: the machine stops."));
  };
  slider.addEventListener("input", () => { step = Number(slider.value); tell(); });
  const play = h("button", { onclick: () => {
    if (timer) { clearInterval(timer); timer = 0; play.textContent = "Run"; return; }
    if (step === moments.length - 1) step = 0;
    play.textContent = "Pause";
    timer = window.setInterval(() => {
      if (!canvas.isConnected || step >= moments.length - 1) { clearInterval(timer); timer = 0; play.textContent = "Run"; return; }
      step += 1;
      slider.value = String(step);
      tell();
    }, 60);
  } }, "Run");
  const one = (by: number) => () => { step = Math.min(Math.max(step + by, 0), moments.length - 1); slider.value = String(step); tell(); };
  onResize(canvas, draw);
  draw();
  tell();
  const done = last.result;
  return h("div", null,
    h("p.sentence", null, `${done.halted ? "Halted" : "Stopped looking"} after ${whole(done.steps)} steps in state ${done.state}, with ${whole(done.ones)} cells that are not blank.`, h("span.quiet", null, ` The transformer ran in ${last.seconds} s.`)),
    h("div.columns", null, h("section", null, h("h2", null, "The whole run"), h("p.quiet", null, "A row is a step, time runs down; red is the head."), canvas),
      h("section", null, h("h2", null, "One step"), h("div.row", null, play, h("button", { onclick: one(-1), "aria-label": "one step back" }, "◀"), h("button", { onclick: one(1), "aria-label": "one step on" }, "▶")), field("step", slider), detail)));
}

/** The tapes of a run, followed by the machine's own rules from one configuration of the transformer to the next. */
function tapesOf(last: any) {
  const moments: [string, number, string][] = last.moments;
  const cells = moments.map((moment) => moment[1]);
  const ends = [0, last.input.length - 1, ...cells];
  const reach: [number, number] = [ends.reduce((a, b) => Math.min(a, b)), ends.reduce((a, b) => Math.max(a, b))];
  const each = (see: (tape: Map<number, string>, at: number) => void, until = moments.length - 1) => {
    const tape = new Map<number, string>(last.input.map((symbol: string, i: number) => [i, symbol]));
    for (let at = 0; at <= until; at += 1) {
      see(tape, at);
      const rule = last.rules.find((r: string[]) => r[0] === moments[at][0] && r[1] === moments[at][2]);
      if (rule) tape.set(moments[at][1], rule[2]);
    }
  };
  return { reach, each, at: (step: number) => { let result = new Map<number, string>(); each((tape, at) => at === step && (result = new Map(tape)), step); return result; } };
}
