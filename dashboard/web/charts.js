// A small chart of the last 15 minutes, drawn by uPlot. Its colours are those of the style
// sheet, so it is drawn again when the theme changes. The wheel and fingers scroll the page.
import { html, signal, useEffect, useId, useRef } from "./lib.js";
import uPlot from "./vendor/uplot.js";
import { span } from "./series.js";
import { duration } from "./format.js";

// pointed is how many seconds ago the reader points at, in all charts at once.
const pointed = signal(null);

const draws = new Set(); // of all charts that are shown
const themed = () => draws.forEach((draw) => draw());
for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) matchMedia(query).addEventListener("change", themed);
new MutationObserver(themed).observe(document.documentElement, { attributes: true });

// Chart shows lines over xs, seconds before now: each is {label, color, values, say} with the
// name of a custom property, one value per x (null: not known), and how a value is written;
// axis is how the first has it at the axis, if not so. bars draws bars instead.
export function Chart({ title, note, xs, lines, bars }) {
  const box = useRef(null), plot = useRef(null), data = useRef(null);
  const id = useId();
  data.current = [xs, ...lines.map((l) => l.values)];
  useEffect(() => {
    const u = plot.current = new uPlot(options(box.current, lines, bars), data.current, box.current);
    const size = new ResizeObserver(() => u.setSize({ width: box.current.clientWidth, height }));
    const draw = () => u.redraw();
    size.observe(box.current);
    draws.add(draw);
    return () => { draws.delete(draw); size.disconnect(); u.destroy(); };
  }, []);
  useEffect(() => { plot.current.setData(data.current); }, [xs]);
  const at = pointed.value === null ? xs.length - 1 : nearest(xs, pointed.value);
  const value = ({ values }) => values[at] ?? (pointed.value === null ? values[at - 1] : null); // the present bucket is not over
  return html`
    <figure class="chart card" role="group" aria-labelledby=${id} aria-describedby=${id + "s"} tabindex="0" onKeyDown=${(e) => key(e, xs, at)}>
      <figcaption>
        <h2><span id=${id}>${title}</span> <span class="then">${pointed.value === null ? "now" : duration(-1000 * xs[at]) + " ago"}</span></h2>
        <p class="legend">${lines.map((l, i) => html`<span><i class=${"line line" + i} style=${{ color: `var(${l.color})` }}></i>${l.label} <b>${shown(l, value(l))}</b> </span>`)}</p>
      </figcaption>
      <div class="plot" ref=${box} aria-hidden="true"></div>
      <p id=${id + "s"} class="unseen">${note} ${lines.map((l) => summary(l))}</p>
    </figure>`;
}

const height = 120;
const shown = (line, value) => value === null || value === undefined ? "–" : line.say(value);

// summary says of a line what those see who see it.
export function summary({ label, values, say }) {
  const known = values.filter((v) => v !== null);
  if (!known.length) return `${label}: nothing is known of the last 15 minutes. `;
  const missing = values.length - known.length;
  return `${label}: ${say(known.at(-1))} at the end, between ${say(Math.min(...known))} and ${say(Math.max(...known))}` +
    (missing ? `, not known for ${missing} of ${values.length} intervals. ` : ". ");
}

const nearest = (xs, x) => xs.reduce((best, v, i) => Math.abs(v - x) < Math.abs(xs[best] - x) ? i : best, 0);

// key moves what is pointed at by the arrow keys.
function key(e, xs, at) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
  if (step) pointed.value = xs[Math.max(0, Math.min(xs.length - 1, at + step))];
  else if (e.key === "Escape" && pointed.value !== null) pointed.value = null;
  else return;
  e.preventDefault();
  e.stopPropagation();
}

function options(box, lines, bars) {
  let was = false; // the mouse was over it
  const css = (name) => { // as the canvas understands it
    box.style.color = `var(${name})`;
    return getComputedStyle(box).color;
  };
  const axis = { stroke: () => css("--muted"), grid: { stroke: () => css("--line"), width: 1 }, ticks: { show: false } };
  const style = (l, i) => ({
    stroke: () => css(l.color), width: 2, points: { show: false },
    dash: i ? [5, 4] : undefined, // no colour alone
    ...bars && { paths: uPlot.paths.bars({ size: [0.7, 20, 2] }), fill: () => css(l.color), width: 0 },
  });
  return {
    width: box.clientWidth, height, padding: [8, 12, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, sync: { key: "overview" }, points: { size: 6 } },
    scales: { x: { time: false, range: [-span / 1000, 0] }, y: { range: (u, low, high) => [0, Math.max(high * 1.1, lines[0].least)] } },
    axes: [
      { ...axis, size: 24, gap: 8, splits: () => [-900, -600, -300, 0], values: (u, vs) => vs.map((v) => v ? `−${-v / 60} min` : "now") },
      { ...axis, size: 64, space: 28, values: (u, vs) => vs.map(lines[0].axis ?? lines[0].say) },
    ],
    series: [{}, ...lines.map(style)],
    hooks: { setCursor: [(u) => {
      const over = u.cursor.left >= 0;
      if (over || was) pointed.value = over ? u.data[0][u.cursor.idx] : null; // else the arrow keys may point
      was = over;
    }] },
  };
}
