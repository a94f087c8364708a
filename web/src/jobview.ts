/** The part of a room that runs a job: its button, its place in the queue, its end, and what went wrong. */

import { type Event, job, Refused } from "./api";
import { h } from "./dom";

export interface JobView {
  button: HTMLButtonElement;
  stop: HTMLButtonElement;
  status: HTMLElement;
  run: (room: string, body: unknown, see: (event: Event) => void) => Promise<Event | null>;
  cancel: () => void;
}

const running = new Set<AbortController>();

/** Ends every job of this page; rooms are left by it. */
export function cancelAll(): void {
  running.forEach((controller) => controller.abort());
}

export function jobView(label: string, begin: () => void): JobView {
  let controller: AbortController | null = null;
  const button = h("button.primary", { onclick: begin }, label);
  const stop = h("button", { onclick: () => controller?.abort(), hidden: true }, "Stop");
  const status = h("p.status", { role: "status", "aria-live": "polite" });
  const say = (text: string, wrong = false) => {
    status.textContent = text;
    status.classList.toggle("wrong", wrong);
  };
  const run = async (room: string, body: unknown, see: (event: Event) => void): Promise<Event | null> => {
    controller?.abort();
    const own = new AbortController();
    controller = own;
    running.add(own);
    stop.hidden = false;
    say("asking the server …");
    const began = performance.now();
    try {
      const last = await job(room, body, (event) => {
        if (own.signal.aborted) return;
        if (event.event === "queue") say(event.ahead === 0 ? "next in the queue" : `waiting: ${event.ahead} ${event.ahead === 1 ? "job" : "jobs"} before this one`);
        else if (event.event === "begun") say("running …");
        else if (event.event === "note") say(event.note);
        see(event);
      }, own.signal);
      if (controller === own) say(`done in ${((performance.now() - began) / 1000).toFixed(1)} s`);
      return last;
    } catch (problem) {
      if (controller !== own) return null;
      if ((problem as Error).name === "AbortError") say("stopped");
      else say(problem instanceof Refused ? problem.message : `something went wrong in this page: ${(problem as Error).message}`, true);
      return null;
    } finally {
      running.delete(own);
      if (controller === own) stop.hidden = true;
    }
  };
  return { button, stop, status, run, cancel: () => controller?.abort() };
}
