/** Elements made from data. A text is always a text node: nothing here reads HTML. */

export type Child = Node | string | number | null | undefined | false;
type Handler = (event: any) => void;
type Attributes = Record<string, string | number | boolean | null | undefined | Handler>;

/** `h("button.primary", {onclick: f}, "Build")`; a tag may carry classes, and `on...` entries are listeners. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K | `${K}.${string}`,
  attributes: Attributes | null = null,
  ...children: (Child | Child[])[]
): HTMLElementTagNameMap[K] {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name as K);
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, String(value));
  }
  put(element, ...children);
  return element;
}

/** Add children to an element. */
export function put(parent: Element, ...children: (Child | Child[])[]): void {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : String(child));
  }
}

/** Replace whatever an element holds. */
export function fill(parent: Element, ...children: (Child | Child[])[]): void {
  parent.replaceChildren();
  put(parent, ...children);
}

/** An SVG element. */
export function svg(tag: string, attributes: Record<string, string | number>, ...children: (Node | string)[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}

/** The value of a CSS variable of the theme. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Calls `redraw` when the element's width changes, and when the theme does; ends when the element is gone. */
export function onResize(element: Element, redraw: () => void): void {
  let width = -1;
  const observer = new ResizeObserver(([entry]) => {
    const now = Math.round(entry.contentRect.width);
    if (now > 0 && now !== width) {
      width = now;
      redraw();
    }
  });
  observer.observe(element);
  const theme = () => (element.isConnected ? redraw() : removeEventListener("themechange", theme));
  addEventListener("themechange", theme);
}

/** Calls `work` at most once a frame, with the last state. */
export function eachFrame(work: () => void): () => void {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      work();
    });
  };
}
