/** The transformers that could answer a request, as a table that sorts. */

import { short, whole } from "./numbers";
import { table } from "./table";

export function candidateTable(rows: any[]): HTMLElement {
  return table("What could answer, smallest first", [
    { name: "method", cell: (row: any) => row.method, by: (row) => row.method },
    { name: "not zero", cell: (row) => whole(row.nonzero), by: (row) => row.nonzero, number: true },
    { name: "heads", cell: (row) => whole(row.heads), by: (row) => row.heads, number: true },
    { name: "predicted", cell: (row) => (row.bound === null ? "–" : short(row.bound)), by: (row) => row.bound, number: true },
    { name: "outcome", cell: (row) => row.outcome },
  ], rows);
}
