/** The pictures of a report (`certiformer.report` has their entries), drawn with the components of this page. */

import { h } from "./dom";
import { heat } from "./heat";
import { lines } from "./lines";
import { matrix } from "./matrix";
import { short } from "./numbers";

export function picture(data: any, epsilon?: () => number): HTMLElement | null {
  if (data.kind === "curves") return curves(data, epsilon);
  if (data.kind === "map") return heat(data).element;
  if (data.kind === "steps") {
    const n = data.values.length;
    const x = Array.from({ length: n }, (_, i) => data.x.low + ((data.x.high - data.x.low) * (i + 0.5)) / n);
    return lines({ title: data.title, caption: data.caption, x, xLabel: data.x.label, height: 140, series: [{ label: "cuts", values: data.values, tone: "accent" }] }).element;
  }
  if (data.kind === "attention") return attention(data);
  return null;
}

function curves(data: any, epsilon?: () => number): HTMLElement {
  const values = lines({
    title: data.title,
    caption: "",
    x: data.points,
    xLabel: data.x.label,
    series: [{ label: "f", values: data.target, tone: "wide", width: 4 }, { label: "T", values: data.model, tone: "thin", width: 1.6 }],
  });
  const tolerance = (sign: number) => data.points.map(() => sign * (epsilon?.() ?? data.epsilon));
  const error = lines({
    title: "The error T − f",
    caption: data.caption,
    x: data.points,
    xLabel: data.x.label,
    height: 180,
    series: [
      { label: "T − f", values: data.error, tone: "error" },
      { label: "ε", values: tolerance(1), tone: "accent", dash: [6, 4] },
      { label: "−ε", values: tolerance(-1), tone: "accent", dash: [6, 4] },
    ],
  });
  const pair = h("div.pair", null, values.element, error.element);
  pair.addEventListener("epsilon", () => error.update(data.points, [data.error, tolerance(1), tolerance(-1)]));
  return pair;
}

function attention(data: any): HTMLElement {
  const heads = data.heads.flatMap((head: any) =>
    head.maps.map((map: any, i: number) => {
      const title = data.inputs.length > 1 ? `${head.name}, ${data.inputs[i]}` : head.name;
      return matrix({ title, caption: "", rows: map.rows, columns: map.columns, values: map.values }).element;
    }),
  );
  return h("section.heads", { "aria-label": data.title || "Where the heads look" }, data.title && h("h3", null, data.title), h("p.quiet", null, data.caption), h("div.figures", null, ...heads));
}

/** Error over the box as a number that the slider of the tolerance is compared with. */
export function largestSample(pictures: any[]): number | null {
  const errors = pictures.flatMap((p) => (p.kind === "curves" ? p.error : p.kind === "map" && p.palette === "error" ? p.values.flat() : []));
  const known = errors.filter((v: number | null): v is number => v !== null).map(Math.abs);
  return known.length ? known.reduce((a: number, b: number) => Math.max(a, b), 0) : null;
}

export function sampleSentence(pictures: any[]): string {
  const largest = largestSample(pictures);
  return largest === null ? "" : `The largest error of all samples drawn here is ${short(largest)}.`;
}
