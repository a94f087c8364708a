/** A table whose columns sort by a click or Enter; a cell with a number is never broken. */

import { type Child, h } from "./dom";

export interface Column<Row> {
  name: string;
  cell: (row: Row) => Child;
  by?: (row: Row) => number | string | null; // what is sorted; a column without it is text
  number?: boolean;
  prose?: boolean; // sentences, which need room
}

export function table<Row>(caption: string, columns: Column<Row>[], rows: Row[], choose?: (row: Row) => void): HTMLElement {
  let [sorted, direction] = [-1, 1];
  const body = h("tbody");
  const heads = columns.map((column, i) => {
    if (!column.by) return h(column.number ? "th.number" : "th", { scope: "col" }, column.name);
    const button = h("button.sort", { onclick: () => sort(i) }, column.name);
    return h(column.number ? "th.number" : "th", { scope: "col", "aria-sort": "none" }, button);
  });
  const fillBody = () => {
    const by = columns[sorted]?.by;
    const list = by ? [...rows].sort((a, b) => direction * order(by(a), by(b))) : rows;
    body.replaceChildren(...list.map((row) => {
      const cells = columns.map((column) => h(column.number ? "td.number" : column.prose ? "td.prose" : "td", null, column.cell(row)));
      return choose ? h("tr.choice", { tabindex: 0, onclick: () => choose(row), onkeydown: (e: KeyboardEvent) => e.key === "Enter" && choose(row) }, ...cells) : h("tr", null, ...cells);
    }));
  };
  const sort = (column: number) => {
    direction = sorted === column ? -direction : 1;
    sorted = column;
    heads.forEach((head, i) => columns[i].by && head.setAttribute("aria-sort", i !== sorted ? "none" : direction > 0 ? "ascending" : "descending"));
    fillBody();
  };
  fillBody();
  return h("div.scroll", { tabindex: 0, role: "region", "aria-label": caption }, h("table", null, h("caption", null, caption), h("thead", null, h("tr", null, ...heads)), body));
}

function order(a: number | string | null, b: number | string | null): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
}
