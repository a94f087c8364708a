/** A colour over two axes, on a canvas, with its scale and the value under the pointer. Split trees are drawn over it. */

import { eachFrame, h, onResize, svg } from "./dom";
import { figure, readout, slug } from "./figure";
import type { Side } from "./formula";
import { short } from "./numbers";
import { css, pixel, scale } from "./palette";

export interface Heat {
  title: string;
  caption: string;
  x: Side;
  y: Side;
  values: (number | null)[][]; // rows from the low end of y
  low: number;
  high: number;
  unit: string;
  palette: string;
}

export interface HeatPicture {
  element: HTMLElement;
  update: (change: Partial<Heat>) => void;
}

export function heat(first: Heat): HeatPicture {
  let data = first;
  const label = () => `${data.title}: ${data.unit} over ${data.x.label} and ${data.y.label}, from ${short(data.low)} to ${short(data.high)}`;
  const canvas = h("canvas", { role: "img", tabindex: 0, "aria-label": label() });
  const words = readout();
  const [left, below, ends] = [h("div.left"), h("div.below"), h("div.ends")];
  const bar = h("canvas.bar", { width: 256, height: 1, "aria-hidden": "true" });

  const draw = eachFrame(() => {
    const rows = data.values.length;
    const columns = data.values[0]?.length ?? 0;
    if (!rows || !columns) return;
    canvas.width = columns;
    canvas.height = rows;
    canvas.setAttribute("aria-label", label());
    const table = scale(data.palette);
    const image = new ImageData(columns, rows);
    const pixels = new Uint32Array(image.data.buffer);
    for (let row = 0; row < rows; row += 1) {
      const values = data.values[rows - 1 - row];
      for (let column = 0; column < columns; column += 1) pixels[row * columns + column] = pixel(table, values[column], data.low, data.high);
    }
    canvas.getContext("2d")!.putImageData(image, 0, 0);
    const strip = new ImageData(256, 1);
    new Uint32Array(strip.data.buffer).set(table);
    bar.getContext("2d")!.putImageData(strip, 0, 0);
    left.replaceChildren(h("span", null, data.y.high_text), h("i", null, data.y.label), h("span", null, data.y.low_text));
    below.replaceChildren(h("span", null, data.x.low_text), h("i", null, data.x.label), h("span", null, data.x.high_text));
    ends.replaceChildren(h("span", null, short(data.low)), h("i", null, data.unit), h("span", null, short(data.high)));
  });

  let [row, column] = [0, 0];
  const tell = () => {
    const [rows, columns] = [data.values.length, data.values[0].length];
    row = Math.min(Math.max(row, 0), rows - 1);
    column = Math.min(Math.max(column, 0), columns - 1);
    const at = (side: Side, share: number) => short(side.low + (side.high - side.low) * share);
    const x = at(data.x, (column + 0.5) / columns);
    const y = at(data.y, (row + 0.5) / rows);
    words.textContent = `${data.x.label} ${x}, ${data.y.label} ${y}: ${data.unit} ${short(data.values[row][column])}`;
  };
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    column = Math.floor(((event.clientX - box.left) / box.width) * data.values[0].length);
    row = data.values.length - 1 - Math.floor(((event.clientY - box.top) / box.height) * data.values.length);
    tell();
  });
  canvas.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [1, 0], ArrowDown: [-1, 0] }[event.key];
    if (!move) return;
    event.preventDefault();
    const step = Math.max(1, Math.round(data.values.length / 40));
    row += move[0] * step;
    column += move[1] * step;
    tell();
  });
  onResize(canvas, draw);
  draw();

  const body = h("div.heat", null, left, canvas, below);
  const element = figure(data.title, data.caption, [body, h("div.scale", null, bar, ends), words], {
    name: slug(data.title),
    canvas: () => canvas,
    svg: () => drawing(data),
    rows: () => [[data.y.label, data.x.label, data.unit], ...data.values.flatMap((list, r) => list.map((v, c) => [
      data.y.low + ((data.y.high - data.y.low) * (r + 0.5)) / data.values.length,
      data.x.low + ((data.x.high - data.x.low) * (c + 0.5)) / list.length, v]))],
  });
  return {
    element,
    update: (change) => {
      data = { ...data, ...change };
      draw();
    },
  };
}

function drawing(data: Heat): SVGElement {
  const [rows, columns] = [data.values.length, data.values[0].length];
  const table = scale(data.palette);
  const cells = data.values.flatMap((list, r) => list.map((v, c) =>
    svg("rect", { x: c, y: rows - 1 - r, width: 1.02, height: 1.02, fill: css(table, v, data.low, data.high) })));
  return svg("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${columns} ${rows}`, preserveAspectRatio: "none" }, ...cells);
}
