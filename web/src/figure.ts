/** The frame of a picture: title, drawing, words under the pointer, caption, and its PNG, SVG and CSV. */

import { type Child, h } from "./dom";
import { csv, save, saveImage, svgText } from "./download";

export interface Exports {
  name: string;
  canvas?: () => HTMLCanvasElement | null;
  svg: () => SVGElement;
  rows: () => (string | number | null)[][];
}

/** A titled picture. `body` holds the drawing; the pointer's values go to the element that `readout` makes. */
export function figure(title: string, caption: string, body: Child[], exports?: Exports, broad = false): HTMLElement {
  const menu = exports && h("div.exports", { role: "group", "aria-label": `Download: ${title}` },
    h("button", { onclick: () => saveImage(exports.canvas?.() ?? exports.svg(), `${exports.name}.png`) }, "PNG"),
    h("button", { onclick: () => save(svgText(exports.svg()), `${exports.name}.svg`, "image/svg+xml") }, "SVG"),
    h("button", { onclick: () => save(csv(exports.rows()), `${exports.name}.csv`, "text/csv") }, "CSV"),
  );
  const head = title || menu ? h("div.head", null, title && h("h3", null, title), menu) : null;
  return h(broad ? "figure.broad" : "figure", null, head, ...body, caption && h("figcaption", null, caption));
}

/** Where the values under the pointer are written; screen readers are told when it rests. */
export function readout(): HTMLElement {
  return h("div.readout", { role: "status", "aria-live": "polite" }, "\u00a0");
}

/** A name for files, from a title. */
export function slug(title: string): string {
  return title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "picture";
}
