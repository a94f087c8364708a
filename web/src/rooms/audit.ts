/** *Audit*: what theorems say of a checkpoint; the factors of a bound as a waterfall. Files stay on this machine. */

import { post, Refused, upload } from "../api";
import { fill, h, svg } from "../dom";
import { figure, slug } from "../figure";
import { heat } from "../heat";
import { jobView } from "../jobview";
import { short, whole } from "../numbers";
import { field, footing, proved, type Room } from "../room";
import { table } from "../table";

const LIMIT = 600e6;
const DIVIDES = ["n", "blocks"]; // factors that a bound falls with

export const audit: Room = { name: "audit", title: "Audit", line: "what theorems say about a trained checkpoint", open };

function open(host: HTMLElement): void {
  const foot = footing();
  const result = h("div");
  const heads = h("input", { type: "number", min: 1, max: 1024, placeholder: "from the config" });
  const view = jobView("Audit the folder named at the start", () => run(null));
  const files = h("input", { type: "file", multiple: true, "aria-label": "files of a checkpoint", onchange: () => send([...files.files!]) });
  const drop = h("div.drop", {
    ondragover: (event: DragEvent) => { event.preventDefault(); drop.classList.add("over"); },
    ondragleave: () => drop.classList.remove("over"),
    ondrop: (event: DragEvent) => { event.preventDefault(); drop.classList.remove("over"); void send([...event.dataTransfer!.files]); },
  }, h("p", null, "Drop config.json and model.safetensors (or one .gguf, .onnx, .npz file) here."), files,
    h("p.quiet", null, "Up to 600 MB a file. They go to a temporary folder of the server on this machine, and are deleted when it ends; nothing leaves the machine."));

  async function send(chosen: File[]): Promise<void> {
    try {
      const large = chosen.find((file) => file.size > LIMIT);
      if (large) throw new Refused(`${large.name} is larger than 600 MB; name its folder when you start instead.`);
      if (!chosen.length) return;
      const { upload: name } = await post("api/uploads", {});
      for (const file of chosen) {
        view.status.textContent = `sending ${file.name} …`;
        await upload(`api/upload/${name}/${encodeURIComponent(ourName(file.name))}`, file);
      }
      await run(name);
    } catch (problem) {
      view.status.textContent = problem instanceof Refused ? problem.message : "the files could not be read";
      view.status.classList.add("wrong");
    }
  }

  async function run(name: string | null): Promise<void> {
    const number = Number(heads.value);
    const last = await view.run("audit", { upload: name, heads: number > 0 ? Math.round(number) : null }, () => undefined);
    if (last) fill(result, page(last.audit));
  }

  fill(host, proved("a theorem that ", h("i", null, "holds"), " here has its hypotheses checked on these weights and its constants computed from them; it is not a certificate of the kernel."),
    h("div.controls", null, drop, h("div", null, field("heads", heads, "only where no config says it"), h("div.row", null, view.button, view.stop), view.status)), result, foot.element);
  foot.set("certiformer audit FOLDER --all --out audit.html", "audit", {});
}

/** A single file of another name is the model; everything else keeps its name, of which the server knows a few. */
function ourName(name: string): string {
  const ending = /\.(gguf|onnx|npz)$/i.exec(name);
  if (ending) return `model.${ending[1].toLowerCase()}`;
  return /\.safetensors$/.test(name) && !/^model-\d{5}-of-\d{5}/.test(name) ? "model.safetensors" : name;
}

const ORDER = ["holds", "false", "vacuous", "holds-if", "open", "does-not-apply"];

function page(data: any): HTMLElement {
  const theorems = [...data.theorems].sort((a, b) => ORDER.indexOf(a.verdict) - ORDER.indexOf(b.verdict));
  const detail = h("div");
  const falls = theorems.filter((t) => t.factors?.length).map(waterfall);
  const rows = data.layers.length;
  const columns = Math.max(0, ...data.layers.map((layer: any) => layer.heads.length));
  const grid = (name: string) => data.layers.map((layer: any) => Array.from({ length: columns }, (_, i) => layer.heads[i]?.[name] ?? null));
  const maps = columns ? [["qk_spectral", "Queries and keys, head by head", "norm of the score map"], ["vo_spectral", "Values and outputs, head by head", "norm of the value map"]].map(([name, title, unit]) => {
    const values = grid(name);
    const known = values.flat().filter((v: number | null) => v !== null) as number[];
    return heat({ title, caption: "A column is a head, a row a layer, the first one below.", x: { label: "head", low: 0, high: columns, low_text: "1", high_text: String(columns) }, y: { label: "layer", low: 0, high: rows, low_text: "1", high_text: String(rows) }, values, low: 0, high: Math.max(1e-9, ...known), unit, palette: "error" }).element;
  }) : [];
  return h("div", null,
    h("h2", null, data.path), ...data.summary.map((text: string) => h("p", null, text)),
    table("What theorems say; choose one to read its numbers", [
      { name: "theorem", cell: (t: any) => h("code", null, t.id), by: (t) => t.id },
      { name: "verdict", cell: (t) => t.verdict, by: (t) => ORDER.indexOf(t.verdict) },
      { name: "value", cell: (t) => short(t.value), by: (t) => t.value, number: true },
      { name: "says", cell: (t) => t.sentence },
    ], theorems, (t) => fill(detail, h("div.claim.weak", null, h("b", null, t.id), h("p", null, t.sentence), t.needs?.length ? h("p.quiet", null, `It needs ${t.needs.join("; ")}.`) : null, t.factors?.length ? waterfall(t) : null))),
    detail,
    falls.length ? h("section", null, h("h2", null, "What makes a bound large"), h("div.figures", null, ...falls)) : null,
    maps.length ? h("section", null, h("h2", null, "Heads"), h("div.figures", null, ...maps)) : null,
    h("section", null, h("h2", null, "Common mistakes"), h("ul", null, ...data.diagnostics.filter((d: any) => d.level !== "silent").map((d: any) => h("li", null, h("b", null, `${d.id}, ${d.level}: `), d.sentence)))),
    h("p.quiet", null, `${whole(data.coverage.accounted)} of ${whole(data.coverage.total)} parameters are accounted for.`));
}

/** The factors of a bound, each a step of a logarithmic scale. */
export function waterfall(theorem: any): HTMLElement {
  const factors: { name: string; value: number }[] = theorem.factors.filter((f: any) => f.value > 0 && Number.isFinite(f.value));
  const steps = factors.map((factor) => ({ ...factor, from: 0, to: Math.log10(factor.value) * (DIVIDES.includes(factor.name) ? -1 : 1) }));
  const ends = [0, ...steps.map((s) => s.to)];
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const at = (value: number) => 220 + ((value - low) / (high - low || 1)) * 300;
  const drawing = () => svg("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 640 ${28 * steps.length + 10}`, class: "waterfall", role: "img", "aria-label": `factors of ${theorem.id}` },
    ...steps.flatMap((s, i) => {
      const [a, b] = [at(Math.min(s.from, s.to)), at(Math.max(s.from, s.to))];
      return [svg("text", { x: 212, y: 28 * i + 21, "text-anchor": "end" }, s.name.length > 34 ? `${s.name.slice(0, 33)}…` : s.name),
        svg("rect", { x: a, y: 28 * i + 6, width: Math.max(b - a, 2), height: 20, class: s.to < s.from ? "down" : "up" }, svg("title", {}, `${s.name}: × ${short(s.value)}`)),
        svg("text", { x: b + 6, y: 28 * i + 21 }, `× ${short(s.value, 3)}`)];
    }));
  return figure(theorem.id, "Bars are logarithms; red makes the bound larger, green works for it.", [drawing()], { name: slug(theorem.id), svg: drawing, rows: () => [["factor", "value"], ...factors.map((f): [string, number] => [f.name, f.value])] }, true);
}
