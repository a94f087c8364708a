/**
 * Formulas evaluated while one types, for the sketch of the target only. The grammar is that of `certiformer build`; what
 * counts is the library's own reading of the text, which the server does when a build begins.
 */

export type Function_ = (x: Float64Array | number[]) => number;

interface Token {
  kind: "number" | "name" | "operator" | "end";
  text: string;
}

const TOKENS = /\s*(?:((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|([A-Za-z_][A-Za-z_0-9]*)|(\*\*|<=|>=|[-+*/^(),<>[\]]))/y;
const ERF = [0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429];

const FUNCTIONS: Record<string, (x: number) => number> = {
  sin: Math.sin, cos: Math.cos, tan: Math.tan, exp: Math.exp, log: Math.log, sqrt: Math.sqrt, tanh: Math.tanh,
  atan: Math.atan, abs: Math.abs, erf,
};

function erf(x: number): number {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const sum = ERF.reduceRight((rest, c) => (rest + c) * t, 0);
  return Math.sign(x) * (1 - sum * Math.exp(-x * x));
}

class Parser {
  private tokens: Token[] = [];
  private at = 0;
  largest = 0;

  constructor(text: string) {
    TOKENS.lastIndex = 0;
    let end = 0;
    while (end < text.trimEnd().length) {
      TOKENS.lastIndex = end;
      const match = TOKENS.exec(text);
      if (!match) throw new Error("unknown character");
      end = TOKENS.lastIndex;
      const kind = match[1] ? "number" : match[2] ? "name" : "operator";
      this.tokens.push({ kind, text: (match[1] ?? match[2] ?? match[3])! });
    }
    this.tokens.push({ kind: "end", text: "" });
  }

  accept(...texts: string[]): string | null {
    const token = this.tokens[this.at];
    if (token.kind !== "operator" || !texts.includes(token.text)) return null;
    this.at += 1;
    return token.text;
  }

  expect(text: string): void {
    if (!this.accept(text)) throw new Error(`expected ${text}`);
  }

  atEnd(): boolean {
    return this.tokens[this.at].kind === "end";
  }

  sum(): Function_ {
    let left = this.product();
    for (let sign = this.accept("+", "-"); sign; sign = this.accept("+", "-")) {
      const [a, b] = [left, this.product()];
      left = sign === "+" ? (x) => a(x) + b(x) : (x) => a(x) - b(x);
    }
    return left;
  }

  product(): Function_ {
    let left = this.signed();
    for (let sign = this.accept("*", "/"); sign; sign = this.accept("*", "/")) {
      const [a, b] = [left, this.signed()];
      left = sign === "*" ? (x) => a(x) * b(x) : (x) => a(x) / b(x);
    }
    return left;
  }

  signed(): Function_ {
    const sign = this.accept("-", "+");
    if (sign) {
      const inner = this.signed();
      return sign === "-" ? (x) => -inner(x) : inner;
    }
    const base = this.atom();
    if (!this.accept("**", "^")) return base;
    const power = this.signed();
    return (x) => base(x) ** power(x);
  }

  atom(): Function_ {
    const token = this.tokens[this.at];
    if (this.accept("(")) {
      const inner = this.sum();
      this.expect(")");
      return inner;
    }
    this.at += 1;
    if (token.kind === "number") {
      const value = Number(token.text);
      return () => value;
    }
    if (token.kind === "name") return this.name(token.text);
    throw new Error("expected a number, a variable or a function");
  }

  name(name: string): Function_ {
    if (name === "pi") return () => Math.PI;
    if (name === "e") return () => Math.E;
    const variable = /^x(\d{0,2})$/.exec(name);
    if (variable) {
      const index = Number(variable[1] || 1) - 1;
      this.largest = Math.max(this.largest, index + 1);
      return (x) => x[index];
    }
    this.expect("(");
    if (name === "where") return this.where();
    const parts = [this.sum()];
    while (this.accept(",")) parts.push(this.sum());
    this.expect(")");
    if (name === "min" || name === "max") {
      const pick = name === "min" ? Math.min : Math.max;
      return (x) => pick(...parts.map((part) => part(x)));
    }
    const known = Object.hasOwn(FUNCTIONS, name) ? FUNCTIONS[name] : null;
    if (!known || parts.length !== 1) throw new Error(`unknown function ${name}`);
    return (x) => known(parts[0](x));
  }

  where(): Function_ {
    const left = this.sum();
    const sign = this.accept("<", "<=", ">", ">=");
    const right = this.sum();
    this.expect(",");
    const yes = this.sum();
    this.expect(",");
    const no = this.sum();
    this.expect(")");
    const holds = (a: number, b: number) => (sign === "<" ? a < b : sign === "<=" ? a <= b : sign === ">" ? a > b : a >= b);
    return (x) => (holds(left(x), right(x)) ? yes(x) : no(x));
  }
}

/** The function of a formula, or null where it is not one (yet). */
export function sketchOf(text: string): { evaluate: Function_; variables: number } | null {
  try {
    const parser = new Parser(text);
    parser.accept("[");
    const evaluate = parser.sum();
    if (!parser.atEnd() && !text.trim().startsWith("[")) return null;
    return { evaluate, variables: Math.max(parser.largest, 1) };
  } catch {
    return null;
  }
}

export interface Side {
  label: string;
  low: number;
  high: number;
  low_text: string;
  high_text: string;
}

/** The axes of a box such as `[0,2*pi]^2`, or null. */
export function boxOf(text: string): Side[] | null {
  const sides: Side[] = [];
  const parts = text.replace(/\s/g, "").match(/\[[^\]]*\](?:(?:\^|\*\*)\d+)?/g);
  if (!parts || parts.join("x") !== text.replace(/\s/g, "").replace(/X/g, "x")) return null;
  for (const part of parts) {
    const [, inner, times] = /^\[([^\]]*)\](?:(?:\^|\*\*)(\d+))?$/.exec(part)!;
    const ends = inner.split(",");
    const [low, high] = ends.map((end) => sketchOf(end)?.evaluate([]) ?? NaN);
    if (ends.length !== 2 || !(low < high)) return null;
    for (let copy = 0; copy < Math.min(Number(times ?? 1), 64); copy += 1) {
      sides.push({ label: `x${sides.length + 1}`, low, high, low_text: ends[0], high_text: ends[1] });
    }
  }
  return sides.length ? sides : null;
}

/** A box as text; equal sides are written as a power. */
export function boxText(sides: Side[]): string {
  const parts = sides.map((side) => `[${side.low_text},${side.high_text}]`);
  return parts.length > 1 && parts.every((part) => part === parts[0]) ? `${parts[0]}^${parts.length}` : parts.join("x");
}
