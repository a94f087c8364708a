/** Requests to the local server. A job is one request whose answer comes line by line; closing it ends the job. */

export interface Event {
  event: string;
  [name: string]: any;
}

export class Refused extends Error {}

const TOKEN = "certiformer-token";

/** The token of the address, kept for reloads of this tab only. */
export function takeToken(): void {
  const match = /^#token=([\w-]+)$/.exec(location.hash);
  if (!match) return;
  sessionStorage.setItem(TOKEN, match[1]);
  history.replaceState(null, "", location.pathname + "#/");
}

function headers(kind?: string): Record<string, string> {
  const token = sessionStorage.getItem(TOKEN);
  return { ...(kind ? { "content-type": kind } : {}), ...(token ? { [TOKEN]: token } : {}) };
}

async function answered(request: Promise<Response>): Promise<Response> {
  let response: Response;
  try {
    response = await request;
  } catch (problem) {
    if ((problem as Error).name === "AbortError") throw problem;
    throw new Refused("The server does not answer. Start certiformer explore again, then reload this page.");
  }
  if (response.ok) return response;
  let sentence = `the server answered ${response.status}`;
  try {
    sentence = (await response.json()).sentence ?? sentence;
  } catch {
    // not ours; the status has to do
  }
  throw new Refused(sentence);
}

export async function get(path: string): Promise<any> {
  return (await answered(fetch(path, { headers: headers() }))).json();
}

export async function getBlob(path: string): Promise<Blob> {
  return (await answered(fetch(path, { headers: headers() }))).blob();
}

export async function post(path: string, body: unknown): Promise<any> {
  const request = fetch(path, { method: "POST", headers: headers("application/json"), body: JSON.stringify(body) });
  return (await answered(request)).json();
}

export async function upload(path: string, file: Blob): Promise<any> {
  return (await answered(fetch(path, { method: "POST", headers: headers("application/octet-stream"), body: file }))).json();
}

/** Runs a job; every event goes to `see`. The promise holds the last event, or ends with a sentence. */
export async function job(room: string, body: unknown, see: (event: Event) => void, signal?: AbortSignal): Promise<Event> {
  const request = fetch(`api/jobs/${room}`, {
    method: "POST",
    headers: headers("application/json"),
    body: JSON.stringify(body),
    signal,
  });
  const response = await answered(request);
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const lines = (rest + value).split("\n");
      rest = lines.pop()!;
      for (const line of lines) {
        const event = JSON.parse(line) as Event;
        if (event.event === "refused" || event.event === "stopped") throw new Refused(event.sentence);
        see(event);
        if (event.event === "done") return event;
      }
    }
  } catch (problem) {
    if (problem instanceof Refused || (problem as Error).name === "AbortError") throw problem;
  }
  throw new Refused("The server has gone while the job ran. Start certiformer explore again, then reload: this view comes back.");
}
