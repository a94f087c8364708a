/** *Audit*: what theorems say of a checkpoint; the factors of a bound as a waterfall. Files stay on this machine. */

import { post, Refused, upload } from "../api";
import { headMaps, theoremTable, waterfall } from "../auditparts";
import { fill, h } from "../dom";
import { jobView } from "../jobview";
import { whole } from "../numbers";
import { field, footing, proved, type Room } from "../room";

const LIMIT = 600e6;

export const audit: Room = { name: "audit", title: "Audit", line: "what theorems say about a trained checkpoint", open };

function open(host: HTMLElement): void {
  const foot = footing();
  const result = h("div");
  const heads = h("input", { type: "number", min: 1, max: 1024, placeholder: "from the config" });
  const view = jobView("Audit the folder named at the start", () => run(null));
  const files = h("input", { type: "file", multiple: true, "aria-label": "files of a checkpoint", onchange: () => send([...files.files!]) });
  const drop = h("div.drop", {
    ondragover: (event: DragEvent) => { event.preventDefault(); drop.classList.add("over"); },
    ondragleave: () => drop.classList.remove("over"),
    ondrop: (event: DragEvent) => { event.preventDefault(); drop.classList.remove("over"); void send([...event.dataTransfer!.files]); },
  }, h("p", null, "Drop config.json and model.safetensors (or one .gguf, .onnx, .npz file) here."), files,
    h("p.quiet", null, "Up to 600 MB a file. They go to a temporary folder of the server on this machine, and are deleted when it ends; nothing leaves the machine."));

  async function send(chosen: File[]): Promise<void> {
    try {
      const large = chosen.find((file) => file.size > LIMIT);
      if (large) throw new Refused(`${large.name} is larger than 600 MB; name its folder when you start instead.`);
      if (!chosen.length) return;
      const { upload: name } = await post("api/uploads", {});
      for (const file of chosen) {
        view.status.textContent = `sending ${file.name} …`;
        await upload(`api/upload/${name}/${encodeURIComponent(ourName(file.name))}`, file);
      }
      await run(name);
    } catch (problem) {
      view.status.textContent = problem instanceof Refused ? problem.message : "the files could not be read";
      view.status.classList.add("wrong");
    }
  }

  async function run(name: string | null): Promise<void> {
    const number = Number(heads.value);
    const last = await view.run("audit", { upload: name, heads: number > 0 ? Math.round(number) : null }, () => undefined);
    if (last) fill(result, page(last.audit));
  }

  fill(host, proved("a theorem that ", h("i", null, "holds"), " here has its hypotheses checked on these weights and its constants computed from them; it is not a certificate of the kernel."),
    h("div.controls", null, drop, h("div", null, field("heads", heads, "only where no config says it"), h("div.row", null, view.button, view.stop), view.status)), result, foot.element);
  foot.set("certiformer audit FOLDER --all --out audit.html", "audit", {});
}

/** A single file of another name is the model; everything else keeps its name, of which the server knows a few. */
function ourName(name: string): string {
  const ending = /\.(gguf|onnx|npz)$/i.exec(name);
  if (ending) return `model.${ending[1].toLowerCase()}`;
  return /\.safetensors$/.test(name) && !/^model-\d{5}-of-\d{5}/.test(name) ? "model.safetensors" : name;
}

function page(data: any): HTMLElement {
  const detail = h("div");
  const falls = data.theorems.filter((t: any) => t.factors?.length).map(waterfall);
  const maps = headMaps(data.layers);
  return h("div", null,
    h("h2", null, data.path), ...data.summary.map((text: string) => h("p", null, text)),
    theoremTable(data.theorems, (t) => fill(detail, h("div.claim.weak", null, h("b", null, t.id), h("p", null, t.sentence), t.needs?.length ? h("p.quiet", null, `It needs ${t.needs.join("; ")}.`) : null, t.factors?.length ? waterfall(t) : null))),
    detail,
    falls.length ? h("section", null, h("h2", null, "What makes a bound large"), h("div.figures", null, ...falls)) : null,
    maps.length ? h("section", null, h("h2", null, "Heads"), h("div.figures", null, ...maps)) : null,
    h("section", null, h("h2", null, "Common mistakes"), h("ul", null, ...data.diagnostics.filter((d: any) => d.level !== "silent").map((d: any) => h("li", null, h("b", null, `${d.id}, ${d.level}: `), d.sentence)))),
    h("p.quiet", null, `${whole(data.coverage.accounted)} of ${whole(data.coverage.total)} parameters are accounted for.`));
}
