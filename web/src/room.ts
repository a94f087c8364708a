/** What every room has: a title, what is proved here, the command that does the same, a link to this very view. */

import { type Child, h } from "./dom";
import { linkTo, type State } from "./state";

export interface Room {
  name: string;
  title: string;
  line: string;
  open: (host: HTMLElement, state: State, keep: (state: State) => void) => void;
}

export function proved(...words: Child[]): HTMLElement {
  return h("p.proved", null, h("b", null, "What is proved here: "), ...words);
}

export interface Footing {
  element: HTMLElement;
  set: (command: string, room: string, state: State) => void;
}

/** The command line and the link of the view. */
export function footing(): Footing {
  const command = h("code");
  const copied = h("span.quiet", { role: "status" });
  let address = "";
  const copy = async (text: string, what: string) => {
    try {
      await navigator.clipboard.writeText(text);
      copied.textContent = `${what} copied`;
    } catch {
      copied.textContent = text;
    }
  };
  const element = h("div.footing", null,
    h("p", null, h("b", null, "The same on the command line: "), command, " ",
      h("button", { onclick: () => copy(command.textContent!, "command") }, "Copy"), " ",
      h("button", { onclick: () => copy(address, "link") }, "Copy a link to this view"), " ", copied));
  return {
    element,
    set: (text, room, state) => {
      command.textContent = text;
      address = `${location.origin}${location.pathname}${linkTo(room, state)}`;
    },
  };
}

/** A text as one word of a shell. */
export function quoted(text: string): string {
  return /^[\w./:=+-]+$/.test(text) ? text : /["$`\\!]/.test(text) ? `'${text.replace(/'/g, `'\\''`)}'` : `"${text}"`;
}

/** A labelled field. */
export function field(label: string, input: HTMLElement, hint = ""): HTMLElement {
  return h("label.field", null, h("span", null, label), input, hint && h("small.quiet", null, hint));
}
