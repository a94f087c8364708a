/** The way in: eight lessons, from the very text of the documentation. */

import lessons from "../../../docs/lessons.md?raw";
import { type Child, fill, h } from "../dom";
import type { Room } from "../room";

export const start: Room = { name: "start", title: "Lessons", line: "eight steps, two minutes each", open };

function open(host: HTMLElement): void {
  const [, ...parts] = lessons.split(/^## /m);
  fill(host, h("p", null, "A transformer approximates, attends, computes, and a kernel proves it: before your eyes, on this machine. Begin with the first lesson, or go straight to a room."),
    h("div.lessons", null, ...parts.map(lesson)));
}

function lesson(text: string): HTMLElement {
  const [title, ...rest] = text.split("\n");
  const paragraphs = rest.join("\n").split(/\n\n+/).map((p) => p.replace(/\n/g, " ").trim()).filter((p) => p && !p.startsWith("!["));
  return h("section.lesson", null, h("h2", null, title), ...paragraphs.map((paragraph) => {
    const view = /^`(#\/[^`]*)`$/.exec(paragraph);
    return view ? h("p", null, h("a.go", { href: view[1] }, "Open this view")) : h("p", null, ...words(paragraph));
  }));
}

/** Emphasis and code of one paragraph. */
function words(text: string): Child[] {
  return text.split(/(`[^`]+`|\*[^*]+\*)/).map((part) =>
    part.startsWith("`") ? h("code", null, part.slice(1, -1)) : /^\*[^*]+\*$/.test(part) ? h("em", null, part.slice(1, -1)) : part);
}
