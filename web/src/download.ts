/** Files for the reader: made in the page, never sent anywhere. */

import { h } from "./dom";

export function save(content: Blob | string, name: string, kind = "text/plain"): void {
  const blob = content instanceof Blob ? content : new Blob([content], { type: kind });
  const address = URL.createObjectURL(blob);
  const link = h("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Rows as CSV; a text that a spreadsheet could take for a formula is quoted as a text. */
export function csv(rows: (string | number | null)[][]): string {
  const cell = (value: string | number | null) => {
    if (value === null) return "";
    if (typeof value === "number") return String(value);
    const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\n]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
  };
  return rows.map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

/** A canvas, or a drawing in SVG, as PNG. */
export async function saveImage(source: HTMLCanvasElement | SVGElement, name: string): Promise<void> {
  let canvas: HTMLCanvasElement;
  if (source instanceof HTMLCanvasElement) canvas = source;
  else {
    const [width, height] = (source.getAttribute("viewBox") ?? "0 0 640 360").split(" ").slice(2).map(Number);
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(source))}`;
    await image.decode();
    canvas = h("canvas", { width: 2 * width, height: 2 * height });
    canvas.getContext("2d")!.drawImage(image, 0, 0, 2 * width, 2 * height);
  }
  canvas.toBlob((blob) => blob && save(blob, name));
}

export function svgText(drawing: SVGElement): string {
  return new XMLSerializer().serializeToString(drawing);
}
