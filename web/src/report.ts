/** Reports that can be touched: `report.html`, circuit and audit pages, as single files without a server. */

import styles from "./style.css?inline";
import { boxes } from "./boxes";
import { h } from "./dom";
import { headMaps, theoremTable, waterfall } from "./auditparts";
import { short, whole } from "./numbers";
import { picture } from "./pictures";
import { proofTree } from "./proof";
import { candidateTable } from "./candidates";
import { matrix } from "./matrix";
import { table } from "./table";

const holder = document.getElementById("live-data");
if (holder?.textContent) {
  const data = JSON.parse(holder.textContent);
  if (data.kind === "build") build(data);
  else if (data.kind === "circuit") circuit(data);
  else if (data.kind === "audit") audit(data);
}

/** Replaces what a section holds beneath its title; the page's own style stays outside. */
function replace(title: string, ...children: (HTMLElement | null)[]): void {
  const section = [...document.querySelectorAll("section")].find((known) => known.querySelector("h2")?.textContent === title);
  if (section) alive(section, [...section.children].slice(1), children);
}

function alive(parent: Element, old: Element[], children: (HTMLElement | null)[]): void {
  const host = h("div");
  const root = host.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(styles);
  root.adoptedStyleSheets = [sheet];
  root.append(...children.filter((child) => child !== null));
  old.forEach((element) => element.remove());
  parent.append(host);
}

function build(data: any): void {
  let epsilon: number = data.epsilon;
  const pictures = data.pictures.filter((p: any) => p.kind !== "attention").map((p: any) => picture(p, () => epsilon)).filter(Boolean) as HTMLElement[];
  const parts = (data.boxes ?? []).map((part: any, i: number) => boxes(data.boxes.length > 1 ? `Boxes of part ${i + 1}: ${part.axes.map((a: any) => a.label).join(", ")}` : "The boxes of the proof",
    `${whole(part.leaves)} boxes; together they cover everything.`, part).element);
  if (pictures.length) replace("Pictures", h("p.quiet", null, "Samples in float64, to look at; values are under the pointer."), tolerance(data, (now) => {
    epsilon = now;
    for (const shown of pictures) shown.dispatchEvent(new Event("epsilon"));
  }), h("div.figures", null, ...parts, ...pictures));
  const title = data.recorded ? "The recorded proof" : "The proof";
  const section = [...document.querySelectorAll("section")].find((known) => known.querySelector("h2")?.textContent === title);
  const tree = section?.querySelector("ul.tree");
  if (section && tree && data.proof) {
    const host = h("div");
    tree.replaceWith(host);
    alive(host, [], [proofTree(data.proof)]);
  }
  const rows = document.querySelector("table.candidates");
  if (rows && data.candidates?.length > 1) {
    const host = h("div");
    (rows.closest(".scroll") ?? rows).replaceWith(host);
    alive(host, [], [candidateTable(data.candidates)]);
  }
  const heads = data.pictures.find((p: any) => p.kind === "attention");
  const first = [...document.querySelectorAll("figure")].find((f) => f.querySelector(".heads"));
  if (heads && first?.parentElement) alive(first.parentElement, [first], [picture(heads)]);
}

/** What the proved bracket says of another tolerance. */
function tolerance(data: any, changed: (epsilon: number) => void): HTMLElement {
  const words = h("p", { role: "status", "aria-live": "polite" });
  const slider = h("input", { type: "range", min: -1.5, max: 1.5, step: 0.01, value: 0, "aria-label": "another tolerance" });
  const said = data.recorded ? "as recorded, not checked here" : "by the proof of this page";
  const tell = () => {
    const epsilon = data.epsilon * 10 ** Number(slider.value);
    const [lower, upper] = [data.lower, data.upper].map((text) => (text === null || text === undefined ? null : Number(text)));
    const verdict = upper !== null && epsilon >= upper ? `holds, ${said}` : lower !== null && epsilon < lower ? `does not hold: an error of at least ${short(lower)} is known` : "is not settled by what was computed";
    words.textContent = `A claim with ε = ${short(epsilon, 3)} ${verdict}.`;
    changed(epsilon);
  };
  slider.addEventListener("input", tell);
  queueMicrotask(tell);
  return h("div", null, h("label.field", null, h("span", null, "another ε"), slider), words);
}

function circuit(data: any): void {
  const heads = data.patterns.heads.map((head: any) => matrix({ title: head.name, caption: "", rows: head.maps[0].rows, columns: head.maps[0].columns, values: head.maps[0].values }).element);
  if (heads.length) replace("Where the heads look", h("p.quiet", null, data.patterns.caption), h("div.figures", null, ...heads));
  replace("The variables", table("Choose a column to sort by it", [
    { name: "variable", cell: (c: any) => c.name, by: (c) => c.name },
    { name: "coordinate", cell: (c) => c.coordinate, by: (c) => c.coordinate, number: true },
    { name: "lives", cell: (c) => c.life },
    { name: "values", cell: (c) => c.values },
    { name: "in the example", cell: (c) => c.example.join("  ") },
    { name: "from", cell: (c) => c.line },
  ], data.cells));
}

function audit(data: any): void {
  replace("What theorems say", theoremTable(data.theorems));
  const falls = data.theorems.filter((t: any) => t.factors.length).map(waterfall);
  if (falls.length) replace("What makes a bound large", h("div.figures", null, ...falls));
  const [queries, values] = headMaps(data.layers);
  if (queries) replace("Queries and keys, head by head", queries);
  if (values) replace("Values and outputs, head by head", values);
}
