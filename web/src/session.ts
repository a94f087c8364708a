/** What rooms tell each other in this tab. */

const LAST = "certiformer-run";

export function lastRun(): string | null {
  return sessionStorage.getItem(LAST);
}

export function rememberRun(name: string): void {
  sessionStorage.setItem(LAST, name);
}
