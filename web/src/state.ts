/** The view as a link: `#/room?name=value`. A link sets what is shown and never starts a job. */

export type State = Record<string, string>;

export function readLink(): { room: string; state: State } {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { room: decodeURIComponent(path) || "start", state: Object.fromEntries(new URLSearchParams(query)) };
}

export function linkTo(room: string, state: State = {}): string {
  const entries = Object.entries(state).filter(([, value]) => value !== "");
  const query = new URLSearchParams(entries).toString();
  return `#/${room}${query ? `?${query}` : ""}`;
}

/** Writes the view into the address, without a new entry of the history. */
export function keepLink(room: string, state: State): void {
  history.replaceState(null, "", linkTo(room, state));
}
