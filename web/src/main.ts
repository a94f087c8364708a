/** The page: its rooms, its theme, and the room that the address names. */

import "./style.css";
import { get, Refused, takeToken } from "./api";
import { fill, h } from "./dom";
import { cancelAll } from "./jobview";
import type { Room } from "./room";
import { approximate } from "./rooms/approximate";
import { attend } from "./rooms/attend";
import { audit } from "./rooms/audit";
import { program } from "./rooms/program";
import { rates } from "./rooms/rates";
import { start } from "./rooms/start";
import { trust } from "./rooms/trust";
import { keepLink, linkTo, readLink } from "./state";

export const ROOMS: Room[] = [start, approximate, attend, program, rates, audit, trust];

const page = document.getElementById("page")!;
const main = h("main", { id: "main", tabindex: -1 });

function theme(choice: string | null): void {
  if (choice) document.documentElement.dataset.theme = choice;
  else delete document.documentElement.dataset.theme;
  dispatchEvent(new Event("themechange"));
}

function shell(): void {
  const toggle = h("button", { onclick: () => {
    const dark = getComputedStyle(document.documentElement).getPropertyValue("--dark").trim() === "1";
    localStorage.setItem("theme", dark ? "light" : "dark");
    theme(localStorage.getItem("theme"));
  } }, "Light or dark");
  fill(page,
    h("a.skip", { href: "#main", onclick: (event: Event) => { event.preventDefault(); main.focus(); } }, "To the content"),
    h("header", null, h("a.brand", { href: linkTo("start") }, "certiformer"),
      h("nav", { "aria-label": "Rooms" }, ...ROOMS.map((room) => h("a", { href: linkTo(room.name), "data-room": room.name }, room.title))), toggle),
    main);
}

function show(): void {
  cancelAll();
  const { room: name, state } = readLink();
  const room = ROOMS.find((known) => known.name === name) ?? ROOMS[0];
  for (const link of page.querySelectorAll<HTMLElement>("nav a")) {
    if (link.dataset.room === room.name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${room.title} · certiformer`;
  const host = h("div.room");
  fill(main, h("h1", null, room.title, h("small.quiet", null, ` ${room.line}`)), host);
  room.open(host, state, (next) => keepLink(room.name, next));
}

takeToken();
theme(localStorage.getItem("theme"));
shell();
show();
addEventListener("hashchange", show);
get("api/about").catch((problem) => {
  if (problem instanceof Refused) page.prepend(h("p.banner", { role: "alert" }, problem.message));
});
