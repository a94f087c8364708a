/** The parts of an audit that its room and its page share: theorems, factors, heads. */

import { h, svg } from "./dom";
import { figure, slug } from "./figure";
import { heat } from "./heat";
import { short } from "./numbers";
import { table } from "./table";

const ORDER = ["holds", "false", "vacuous", "holds-if", "open", "does-not-apply"];
const DIVIDES = ["n", "blocks"]; // factors that a bound falls with

export function theoremTable(theorems: any[], choose?: (theorem: any) => void): HTMLElement {
  const sorted = [...theorems].sort((a, b) => ORDER.indexOf(a.verdict) - ORDER.indexOf(b.verdict));
  return table(choose ? "What theorems say; choose one to read its numbers" : "Choose a column to sort by it", [
    { name: "theorem", cell: (t: any) => h("code", null, t.id), by: (t) => t.id },
    { name: "verdict", cell: (t) => t.verdict, by: (t) => ORDER.indexOf(t.verdict) },
    { name: "value", cell: (t) => short(t.value), by: (t) => t.value, number: true },
    { name: "says", cell: (t) => t.sentence, prose: true },
  ], sorted, choose);
}

/** The norms of the score maps and of the value maps, a pixel a head; nothing where there are no heads. */
export function headMaps(layers: any[]): HTMLElement[] {
  const rows = layers.length;
  const columns = Math.max(0, ...layers.map((layer) => layer.heads.length));
  if (!columns) return [];
  return [["qk_spectral", "Queries and keys, head by head", "norm of the score map"], ["vo_spectral", "Values and outputs, head by head", "norm of the value map"]].map(([name, title, unit]) => {
    const values = layers.map((layer) => Array.from({ length: columns }, (_, i) => layer.heads[i]?.[name] ?? null));
    const known = values.flat().filter((v): v is number => v !== null);
    const side = (label: string, count: number) => ({ label, low: 0, high: count, low_text: "1", high_text: String(count) });
    return heat({ title, caption: "A column is a head, a row a layer, the first one below.", x: side("head", columns), y: side("layer", rows), values, low: 0, high: Math.max(1e-9, ...known), unit, palette: "error" }).element;
  });
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
