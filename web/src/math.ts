/** Formulas in print, by KaTeX, which is fetched from this very server when the first one is shown. */

let wanted: Promise<typeof import("katex").default> | null = null;

function katex() {
  wanted ??= Promise.all([import("katex"), import("katex/dist/katex.min.css")]).then(([module]) => module.default);
  return wanted;
}

/** Show LaTeX in an element; what is shown last wins. */
export async function math(host: HTMLElement, latex: string): Promise<void> {
  host.dataset.latex = latex;
  const library = await katex();
  if (host.dataset.latex !== latex) return;
  try {
    library.render(latex, host, { throwOnError: true, trust: false, strict: "ignore", maxExpand: 200, maxSize: 10 });
  } catch {
    host.replaceChildren(); // half a formula, while somebody types
  }
}

/** A formula of `certiformer build` in print, as far as it is understood; nothing is concluded from it. */
export function formulaMath(host: HTMLElement, formula: string): void {
  const simple = /^[\w\s+\-*/^().,<>=]*$/.test(formula) && formula.length < 300;
  if (!simple) {
    host.replaceChildren();
    delete host.dataset.latex;
    return;
  }
  const latex = formula
    .replace(/\*\*/g, "^")
    .replace(/\bx(\d+)(?:_(\d+))?\b/g, (_, a, b) => (b ? `x_{${a},${b}}` : `x_{${a}}`))
    .replace(/\b(sin|cos|tan|exp|log|tanh|min|max)\b/g, "\\$1 ")
    .replace(/\b(sqrt|atan|erf|abs|where)\b/g, "\\operatorname{$1}")
    .replace(/\bpi\b/g, "\\pi ")
    .replace(/\*/g, "\\,")
    .replace(/\^(\d+)/g, "^{$1}")
    .replace(/</g, "\\lt ")
    .replace(/>/g, "\\gt ");
  void math(host, `f(x) = ${latex}`);
}
