/** *Trust*: a proof node by node, with the rule of the kernel, its code, and what is known of it. */

import { fill, h } from "../dom";
import { jobView } from "../jobview";
import { bound } from "../numbers";
import { type ProofNode, proofTree } from "../proof";
import { footing, proved, type Room } from "../room";
import { lastRun } from "../session";

export const trust: Room = { name: "trust", title: "Trust", line: "a proof, node by node, down to the lines that check it", open };

function open(host: HTMLElement): void {
  const foot = footing();
  const result = h("div");
  const own = jobView("Open the proof of my last build", () => run(own, lastRun()));
  const start = jobView("Open the folder named at the start", () => run(start, null));
  async function run(view: typeof own, name: string | null): Promise<void> {
    const last = await view.run("trust", { run: name }, () => undefined);
    if (last) fill(result, page(last));
  }
  if (!lastRun()) own.button.disabled = true;
  fill(host, proved("the checker has derived every step again, just now, from the files of the folder. What the rules mean is proved on paper; no proof assistant has checked them."),
    h("div.row", null, own.button, start.button, own.stop, start.stop), own.status, start.status, !lastRun() && h("p.quiet", null, "Build something in the room Approximate first, or start with certiformer explore runs/NAME."), result, foot.element);
  foot.set("certiformer check runs/NAME", "trust", {});
}

function page(last: any): HTMLElement {
  const about = (node: ProofNode) => {
    const facts = last.rules[node.theorem ?? node.rule];
    if (!facts) return null;
    return h("details.rule-facts", null, h("summary", null, "What this rule says, and its code"),
      h("p.says", null, facts.says),
      facts.assumptions?.length ? h("ul", null, ...facts.assumptions.map(([name, text, status]: string[]) => h("li", null, h("b", null, `${name} (${status}): `), text))) : null,
      h("p.quiet", null, `Status: ${facts.status}.`),
      facts.place ? h("p", null, h("code", null, facts.place)) : null,
      facts.code ? h("pre.code", { tabindex: 0 }, facts.code) : null);
  };
  return h("div", null,
    h(`div.claim.${last.accepted ? "good" : "bad"}` as "div.claim", null, h("span.badge", null, last.accepted ? "accepted" : "not accepted"), h("p.sentence", null, last.claim), h("p", null, last.reason, last.upper ? `; the proved upper end is ${bound(last.upper, true)}` : "", ".")),
    last.proof ? h("section", null, h("h2", null, "The proof"), proofTree(last.proof, about)) : h("p", null, "There is no proof in this folder."),
    h("details", null, h("summary", null, "Hashes of the files"), h("ul.mono", null, ...Object.entries(last.seals).map(([name, seal]) => h("li", null, `${name}: ${seal}`)))));
}
