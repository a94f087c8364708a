/** Colour scales, the same as in the static reports: from dark to light, legible in grey and for the colour-blind. */

const ANCHORS: Record<string, string> = {
  value: "440154 46327e 365c8d 277f8e 1fa187 4ac16d a0da39 fde725",
  error: "0b0724 35115f 6b1d81 a1307e d8456c f8765c feae77 fcfdbf",
  depth: "2a1e44 413d7b 395a95 347ca4 379fa9 4fbfae 94dcb5 def5e5",
};
const STEPS = 256;
const tables = new Map<string, Uint32Array>();

/** The colours of a scale as pixels (ABGR, as a canvas holds them). */
export function scale(name: string): Uint32Array {
  const known = tables.get(name);
  if (known) return known;
  const anchors = (ANCHORS[name] ?? ANCHORS.value).split(" ").map((hex) => [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16)));
  const table = new Uint32Array(STEPS);
  for (let step = 0; step < STEPS; step += 1) {
    const position = (step / (STEPS - 1)) * (anchors.length - 1);
    const index = Math.min(Math.floor(position), anchors.length - 2);
    const [r, g, b] = anchors[index].map((c, i) => Math.round(c + (anchors[index + 1][i] - c) * (position - index)));
    table[step] = (255 << 24) | (b << 16) | (g << 8) | r;
  }
  tables.set(name, table);
  return table;
}

export function pixel(table: Uint32Array, value: number | null, low: number, high: number): number {
  if (value === null || Number.isNaN(value)) return 0;
  const share = high > low ? (value - low) / (high - low) : 0;
  return table[Math.round(Math.min(Math.max(share, 0), 1) * (STEPS - 1))];
}

export function css(table: Uint32Array, value: number | null, low: number, high: number): string {
  const p = pixel(table, value, low, high);
  return value === null ? "transparent" : `rgb(${p & 255},${(p >> 8) & 255},${(p >> 16) & 255})`;
}
