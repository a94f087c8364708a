/** Numbers for people: short, with a real minus sign, never broken across lines (`.number` in the style sheet). */

export function short(value: number | null | undefined, digits = 4): string {
  if (value === null || value === undefined) return "–";
  if (!Number.isFinite(value)) return String(value).replace("-", "−").replace("Infinity", "∞");
  const size = Math.abs(value);
  const text =
    value === 0 ? "0" : size >= 1e6 || size < 1e-4 ? value.toExponential(digits - 1).replace(/\.?0+e/, "e") : trimmed(value, digits);
  return text.replace("-", "−").replace("e+", "e");
}

function trimmed(value: number, digits: number): string {
  return Math.abs(value) >= 10 ** digits ? Math.round(value).toLocaleString("en-US") : String(Number(value.toPrecision(digits)));
}

export function whole(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en-US");
}

/** A proved upper end must not look smaller than it is, nor a lower end larger. */
export function bound(text: string | null | undefined, up: boolean): string {
  if (text === null || text === undefined) return "–";
  const value = Number(text.includes("/") ? fraction(text) : text);
  if (!Number.isFinite(value) || value === 0) return short(value);
  const power = 10 ** (3 - Math.floor(Math.log10(Math.abs(value))));
  const rounded = (up ? Math.ceil(value * power * (1 - 1e-13)) : Math.floor(value * power * (1 + 1e-13))) / power;
  return short(up ? Math.max(rounded, 0) : rounded, 5);
}

function fraction(text: string): number {
  const [above, below] = text.split("/");
  return Number(above) / Number(below);
}
