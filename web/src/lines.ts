/** Curves over one axis, by uPlot: any number of series, values under the pointer, zoom by dragging. */

import uPlot from "uplot";
import { colour, h, onResize, svg } from "./dom";
import { figure, readout, slug } from "./figure";
import { short } from "./numbers";

export interface Series {
  label: string;
  values: (number | null)[];
  tone: string;
  width?: number;
  dash?: number[];
  points?: boolean;
}

export interface Lines {
  title: string;
  caption: string;
  x: number[];
  xLabel: string;
  series: Series[];
  height?: number;
  logX?: boolean;
  logY?: boolean;
  broad?: boolean;
}

/** The picture, and a function that replaces its data (for what is still running). */
export function lines(data: Lines): { element: HTMLElement; update: (x: number[], series: (number | null)[][]) => void } {
  const host = h("div.lines", { role: "img", "aria-label": `${data.title}: ${data.series.map((s) => s.label).join(", ")} over ${data.xLabel}` });
  const words = readout();
  let plot: uPlot | null = null;
  const values = (): uPlot.AlignedData => [data.x, ...data.series.map((s) => s.values)] as uPlot.AlignedData;

  const draw = () => {
    plot?.destroy();
    const powers = (_: unknown, splits: number[]) => splits.map((v) => (Number.isInteger(Math.round(Math.log10(v) * 1e6) / 1e6) ? v : null));
    const axis = { stroke: colour("quiet"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line") }, font: "12px system-ui" };
    plot = new uPlot(
      {
        width: host.clientWidth,
        height: data.height ?? 240,
        legend: { show: false },
        cursor: { points: { size: 6 }, drag: { x: true, y: false } },
        scales: { x: { time: false, distr: data.logX ? 3 : 1 }, y: { distr: data.logY ? 3 : 1 } },
        axes: [
          { ...axis, ...(data.logX ? { grid: { ...axis.grid, filter: powers } } : {}), label: data.xLabel, labelSize: 20, labelFont: "12px system-ui", values: (_, ticks) => ticks.map((t) => (t === null ? "" : short(t))) },
          { ...axis, ...(data.logY ? { grid: { ...axis.grid, filter: powers }, ticks: { ...axis.ticks, filter: powers } } : {}), size: 62, values: (_, ticks) => ticks.map((t) => (t === null ? "" : short(t))) },
        ],
        series: [
          {},
          ...data.series.map((s) => ({
            label: s.label,
            stroke: colour(s.tone),
            width: s.width ?? 1.6,
            dash: s.dash,
            points: { show: s.points ?? false, size: 7, fill: colour(s.tone) },
          })),
        ],
        hooks: {
          setCursor: [
            (u) => {
              const at = u.cursor.idx;
              if (at === null || at === undefined) return;
              const told = data.series.map((s) => `${s.label} ${short(s.values[at])}`);
              words.textContent = `${data.xLabel} ${short(data.x[at])}: ${told.join(" · ")}`;
            },
          ],
        },
      },
      values(),
      host,
    );
  };
  onResize(host, draw);
  const keys = h("div.keys", null, ...data.series.map((s) => key(s.label, s.tone, s.dash !== undefined)));
  const element = figure(data.title, data.caption, [keys, host, words], {
    name: slug(data.title),
    canvas: () => host.querySelector("canvas"),
    svg: () => drawing(data),
    rows: () => [[data.xLabel, ...data.series.map((s) => s.label)], ...data.x.map((x, i) => [x, ...data.series.map((s) => s.values[i] ?? null)])],
  }, data.broad ?? true);
  const update = (x: number[], series: (number | null)[][]) => {
    data.x = x;
    series.forEach((list, i) => (data.series[i].values = list));
    plot?.setData(values());
  };
  return { element, update };
}

/** An entry of the legend: a line in the colour of its series. */
export function key(label: string, tone: string, dashed = false): HTMLElement {
  const sample = svg("svg", { viewBox: "0 0 22 6", class: "sample", "aria-hidden": "true" },
    svg("line", { x1: 0, x2: 22, y1: 3, y2: 3, stroke: `var(--${tone})`, "stroke-width": 3, ...(dashed ? { "stroke-dasharray": "5 3" } : {}) }));
  return h("span.key", null, sample, label);
}

/** The same picture as SVG, for print. */
function drawing(data: Lines): SVGElement {
  const [width, height, left, top] = [720, 400, 70, 16];
  const fx = data.logX ? Math.log10 : (v: number) => v;
  const fy = data.logY ? Math.log10 : (v: number) => v;
  const ys = data.series.flatMap((s) => s.values).filter((v): v is number => v !== null && Number.isFinite(fy(v)));
  const [x0, x1] = [fx(data.x[0]), fx(data.x[data.x.length - 1])];
  const [y0, y1] = [Math.min(...ys.map(fy)), Math.max(...ys.map(fy))];
  const px = (x: number) => left + ((fx(x) - x0) / (x1 - x0 || 1)) * (width - left - 16);
  const py = (y: number) => height - 44 - ((fy(y) - y0) / (y1 - y0 || 1)) * (height - 44 - top);
  const paths = data.series.map((s) => {
    let path = "";
    s.values.forEach((y, i) => {
      if (y !== null && Number.isFinite(fy(y))) path += `${path ? "L" : "M"}${px(data.x[i]).toFixed(1)} ${py(y).toFixed(1)}`;
    });
    return svg("path", { d: path, fill: "none", stroke: colour(s.tone) || "#333", "stroke-width": s.width ?? 1.6, ...(s.dash ? { "stroke-dasharray": s.dash.join(" ") } : {}) }, svg("title", {}, s.label));
  });
  const text = (x: number, y: number, content: string, anchor = "middle") =>
    svg("text", { x, y, "text-anchor": anchor, "font-size": 13, "font-family": "system-ui, sans-serif", fill: "#555" }, content);
  return svg("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${width} ${height}` },
    svg("rect", { width, height, fill: "#fff" }), ...paths,
    text(left, height - 24, short(data.x[0]), "start"), text(width - 16, height - 24, short(data.x[data.x.length - 1]), "end"),
    text(width / 2, height - 6, data.xLabel), text(left - 6, height - 44, short(data.logY ? 10 ** y0 : y0), "end"), text(left - 6, top + 10, short(data.logY ? 10 ** y1 : y1), "end"));
}
