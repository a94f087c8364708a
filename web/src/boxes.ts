/**
 * The boxes of a proof, unfolded from their split tree and drawn on a canvas: bytes in preorder, an axis to be halved or
 * 255 for a leaf. Tens of thousands are drawn at once; while the kernel checks, they fill in its order.
 */

import { colour, eachFrame, h, onResize, svg } from "./dom";
import { figure, readout, slug } from "./figure";
import type { Side } from "./formula";
import { short } from "./numbers";
import { css, scale } from "./palette";

const LEAF = 255;

/** Leaves as `low x, low y, width, height, depth`, shares of the box. */
export function unfold(tree: Uint8Array): Float64Array {
  const leaves: number[] = [];
  const open: number[][] = [[0, 0, 1, 1, 0]];
  for (const byte of tree) {
    const [x, y, w, t, depth] = open.pop()!;
    if (byte === LEAF) leaves.push(x, y, w, t, depth);
    else if (byte === 0) open.push([x + w / 2, y, w / 2, t, depth + 1], [x, y, w / 2, t, depth + 1]);
    else open.push([x, y + t / 2, w, t / 2, depth + 1], [x, y, w, t / 2, depth + 1]);
  }
  return new Float64Array(leaves);
}

export function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
}

export interface BoxPart {
  axes: Side[];
  tree: string;
  leaves: number;
  bound?: string;
}

export interface BoxPicture {
  element: HTMLElement;
  show: (part: BoxPart, closed: number) => void;
  close: (closed: number) => void;
}

export function boxes(title: string, caption: string, first: BoxPart, closedFirst = Infinity): BoxPicture {
  let part = first;
  let closed = closedFirst;
  let leaves = unfold(bytesOf(part.tree));
  const words = readout();
  const canvas = h("canvas", { role: "img" });
  const [left, below] = [h("div.left"), h("div.below")];
  const flat = () => part.axes.length === 1;

  const draw = eachFrame(() => {
    const count = leaves.length / 5;
    const width = canvas.clientWidth;
    const height = flat() ? 72 : width;
    const ratio = devicePixelRatio || 1;
    canvas.classList.toggle("flat", flat());
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.setAttribute("aria-label", `${title}: ${count.toLocaleString("en-US")} boxes, ${Math.min(closed, count).toLocaleString("en-US")} confirmed`);
    const brush = canvas.getContext("2d")!;
    let most = 1;
    for (let i = 4; i < leaves.length; i += 5) most = Math.max(most, leaves[i]);
    const table = scale("depth");
    const tones = Array.from({ length: most + 1 }, (_, depth) => css(table, depth, 0, most + 1));
    const [open, line] = [colour("card"), colour("page")];
    const gap = count > 4000 ? 0 : count > 600 ? 0.5 : 1;
    brush.fillStyle = line;
    brush.fillRect(0, 0, canvas.width, canvas.height);
    for (let i = 0; i < count; i += 1) {
      const at = 5 * i;
      brush.fillStyle = i < closed ? tones[leaves[at + 4]] : open;
      const y = flat() ? 0 : 1 - leaves[at + 1] - leaves[at + 3];
      const h_ = flat() ? 1 : leaves[at + 3];
      brush.fillRect(leaves[at] * canvas.width, y * canvas.height, Math.max(leaves[at + 2] * canvas.width - gap, 0.5), Math.max(h_ * canvas.height - gap, 0.5));
    }
    const [x, y] = part.axes;
    below.replaceChildren(h("span", null, x.low_text), h("i", null, x.label), h("span", null, x.high_text));
    left.replaceChildren(...(y ? [h("span", null, y.high_text), h("i", null, y.label), h("span", null, y.low_text)] : []));
  });

  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const [sx, sy] = [(event.clientX - box.left) / box.width, flat() ? 0.5 : 1 - (event.clientY - box.top) / box.height];
    for (let at = 0; at < leaves.length; at += 5) {
      const inside = sx >= leaves[at] && sx < leaves[at] + leaves[at + 2] && (flat() || (sy >= leaves[at + 1] && sy < leaves[at + 1] + leaves[at + 3]));
      if (!inside) continue;
      const sides = part.axes.map((axis, i) => {
        const [low, width] = [leaves[at + i], leaves[at + 2 + i]];
        return `${axis.label} from ${short(axis.low + (axis.high - axis.low) * low)} to ${short(axis.low + (axis.high - axis.low) * (low + width))}`;
      });
      words.textContent = `${sides.join(", ")}: cut ${leaves[at + 4]} times, ${at / 5 < closed ? "confirmed" : "not yet confirmed"}`;
      return;
    }
  });
  onResize(canvas, draw);
  const body = h("div.heat", null, left, canvas, below);
  const element = figure(title, caption, [body, words], {
    name: slug(title),
    canvas: () => canvas,
    svg: () => drawing(leaves, flat()),
    rows: () => [["low 1", "low 2", "width 1", "width 2", "cuts"], ...Array.from({ length: leaves.length / 5 }, (_, i) => [...leaves.subarray(5 * i, 5 * i + 5)])],
  });
  draw();
  return {
    element,
    show: (next, now) => {
      part = next;
      leaves = unfold(bytesOf(next.tree));
      closed = now;
      draw();
    },
    close: (now) => {
      closed = now;
      draw();
    },
  };
}

function drawing(leaves: Float64Array, flat: boolean): SVGElement {
  let most = 1;
  for (let i = 4; i < leaves.length; i += 5) most = Math.max(most, leaves[i]);
  const table = scale("depth");
  const cells: SVGElement[] = [];
  for (let at = 0; at < leaves.length; at += 5) {
    const [x, y, w, t, depth] = leaves.subarray(at, at + 5);
    const box = flat ? { x: 1000 * x, y: 0, width: 1000 * w, height: 80 } : { x: 1000 * x, y: 1000 * (1 - y - t), width: 1000 * w, height: 1000 * t };
    cells.push(svg("rect", { ...box, fill: css(table, depth, 0, most + 1), stroke: "#fff", "stroke-width": 1 }));
  }
  return svg("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 1000 ${flat ? 80 : 1000}` }, ...cells);
}
