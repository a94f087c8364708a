/** Where a head looks: a row for each position that looks, a column for each it may look at; values under the pointer. */

import { h } from "./dom";
import { figure, readout, slug } from "./figure";
import { svg } from "./dom";
import { short } from "./numbers";
import { css, scale } from "./palette";

export interface Matrix {
  title: string;
  caption: string;
  rows: string[];
  columns: string[];
  values: number[][];
}

export function matrix(data: Matrix): { element: HTMLElement; update: (values: number[][]) => void } {
  let values = data.values;
  const words = readout();
  const small = data.rows.length <= 12;
  const cells: HTMLTableCellElement[][] = [];
  const tell = (row: number, column: number) => {
    words.textContent = `${data.rows[row]} (position ${row + 1}) looks at ${data.columns[column]} with weight ${short(values[row][column], 5)}`;
  };
  const body = data.rows.map((name, r) => {
    cells.push(data.columns.map((_, c) => h("td", { onpointerenter: () => tell(r, c) })));
    return h("tr", null, h("th", { scope: "row" }, name), ...cells[r]);
  });
  const paint = () => {
    const table = scale("error");
    values.forEach((row, r) => row.forEach((value, c) => {
      const cell = cells[r][c];
      cell.style.background = css(table, value, 0, 1.1);
      cell.style.color = value > 0.6 ? "#111" : "#fff";
      cell.textContent = small ? value.toFixed(2).replace(/^0\./, ".").replace("1.00", "1") : "";
      cell.title = short(value, 5);
    }));
  };
  paint();
  const grid = h("table.matrix", { tabindex: 0, "aria-label": `${data.title}: weights of attention` },
    h("thead", null, h("tr", null, h("td"), ...data.columns.map((name) => h("th", { scope: "col" }, name)))), h("tbody", null, ...body));
  let [r, c] = [0, -1];
  grid.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!move) return;
    event.preventDefault();
    r = Math.min(Math.max(r + move[0], 0), data.rows.length - 1);
    c = Math.min(Math.max(c + move[1], 0), data.columns.length - 1);
    tell(r, c);
  });
  const element = figure(data.title, data.caption, [h("div.scroll", { tabindex: 0, role: "region", "aria-label": data.title }, grid), words], {
    name: slug(data.title),
    svg: () => drawing(values),
    rows: () => [["", ...data.columns], ...values.map((row, i) => [data.rows[i], ...row])],
  });
  return { element, update: (next) => { values = next; paint(); } };
}

function drawing(values: number[][]): SVGElement {
  const table = scale("error");
  const cells = values.flatMap((row, r) => row.map((v, c) => svg("rect", { x: 20 * c, y: 20 * r, width: 19, height: 19, fill: css(table, v, 0, 1.1) })));
  return svg("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${20 * (values[0]?.length ?? 1)} ${20 * values.length}` }, ...cells);
}
