/** A proof tree that unfolds node by node, by click or keyboard. */

import { type Child, h } from "./dom";
import { bound } from "./numbers";

export interface ProofNode {
  rule: string;
  bound: string;
  notes?: string[];
  theorem?: string | null;
  children: ProofNode[];
}

export function proofTree(node: ProofNode, about: (node: ProofNode) => Child = () => null, what = "|T − f|", open = true): HTMLElement {
  const head = h("summary", null, h("b.rule", null, node.rule), ` proves ${what} ≤ `, h("span.number", null, bound(node.bound, true)));
  const notes = node.notes?.length ? h("ul.notes", null, ...node.notes.map((note) => h("li", null, note))) : null;
  const children = node.children.map((child) => proofTree(child, about, "its part", node.children.length < 5));
  return h("details.node", { open }, head, notes, about(node), ...children);
}
