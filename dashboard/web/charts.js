// A small SVG chart of the recent past. The style sheet sets its colours, and it fills the width
// that it gets. A unit of its x axis is a second; its y axis has 100 units.
import { html, useId } from "./lib.js";
import { signal } from "./signal.js";
import { duration, hour } from "./format.js";
import { now } from "./now.js";
import { times } from "./times.js";

// pointed is the x at which the user points, in all charts at once, or null.
const pointed = signal(null);

// Chart draws lines over xs: seconds from now, at most 0. A line is {label, tone, values, say,
// axis, least}. values has a number or null (unknown) for each x, and say formats a number. In the
// first line, axis formats the numbers at the y axis (default: say), and the axis goes up to least
// or more. bars draws bars instead of lines. span is the time shown: {ms, title, minutes}.
export function Chart({ title, xs, lines, bars, span }) {
  const width = span.ms / 1000;
  const id = useId();
  const at = pointed.value === null ? xs.length - 1 : nearest(xs, pointed.value);
  const shown = ({ values, say }) => {
    const v = pointed.value === null ? values.slice(-3).findLast((known) => known !== null) : values[at]; // the present bucket is incomplete
    return v === null || v === undefined ? "–" : say(v);
  };
  const [{ axis = lines[0].say, least }] = lines;
  const steps = ticks(Math.max(least, ...lines.flatMap((l) => l.values)));
  const top = steps.at(-1);
  const point = (e) => {
    const box = e.currentTarget.getBoundingClientRect();
    pointed.value = ((e.clientX - box.left) / box.width - 1) * width;
  };
  return html`
    <div class="chart card" role="group" aria-labelledby=${id} aria-describedby=${id + "s"} tabindex="0" onKeyDown=${(e) => key(e, xs, at)}>
      <div>
        <h2><span id=${id}>${title}</span> <span class="then">${pointed.value === null ? "now" : duration(-1000 * xs[at]) + " ago"}</span></h2>
        <p class="legend">${lines.map((l, i) => html`<span class=${l.tone}><i class=${"line line" + i}></i><span>${l.label}</span> <b>${shown(l)}</b></span>`)}</p>
      </div>
      <div class="plot" aria-hidden="true">
        <svg viewBox=${`${-width} -100 ${width} 100`} preserveAspectRatio="none" onPointerMove=${point} onPointerLeave=${() => { pointed.value = null; }}>
          ${steps.map((v) => html`<path class="grid" d=${`M${-width} ${-100 * v / top}H0`} />`)}
          ${[...span.minutes, 0].map((m) => html`<path class="grid" d=${`M${m * 60} 0V-100`} />`)}
          ${lines.map((l, i) => html`<path class=${`line${i} ${l.tone}`} d=${path(xs, l.values, top, bars)} />`)}
          ${pointed.value !== null && html`<path class="at" d=${`M${xs[at]} 0V-100`} />`}
        </svg>
        <div class="ys">${steps.toReversed().map((v) => html`<span>${axis(v)}</span>`)}</div>
        <div class="xs">${span.minutes.map((m) => html`<span>${label(m)}</span>`)}<span>${label(0)}</span></div>
      </div>
      <p id=${id + "s"} class="unseen">${lines.map((l) => summary(l, span.title))}</p>
    </div>`;
}

// label returns the text for m minutes from now (m <= 0), relative to now or by the clock.
function label(m) {
  if (times.value !== "relative") return hour(now() + 60_000 * m).replace(/:\d\d(Z?)$/, "$1");
  return m ? `−${duration(-60_000 * m)}` : "now";
}

// path returns the SVG path of the known values, with gaps for unknown ones.
export function path(xs, values, top, bars) {
  let open = false;
  return values.map((v, i) => {
    const y = -100 * v / top;
    if (v === null || bars && !v) return open = false, "";
    if (bars) return `M${xs[i]} 0V${y}`;
    const step = `${open ? "L" : "M"}${xs[i]} ${y}`;
    open = true;
    return (values[i - 1] ?? values[i + 1] ?? null) === null ? step + "h0" : step; // a single value is a dot
  }).join("");
}

// ticks returns two to five round numbers, from 0 to at least high.
export function ticks(high) {
  const unit = 10 ** Math.floor(Math.log10(high));
  const step = [0.5, 1, 2, 5].map((n) => n * unit).find((s) => high / s <= 4);
  return Array.from({ length: Math.ceil(high / step) + 1 }, (_, i) => i * step);
}

// summary describes a line in words, for screen readers.
export function summary({ label, values, say }, span) {
  const known = values.filter((v) => v !== null);
  if (!known.length) return `${label}: nothing is known of the last ${span}. `;
  const missing = values.length - known.length;
  return `${label}: ${say(known.at(-1))} at the end, between ${say(Math.min(...known))} and ${say(Math.max(...known))}` +
    (missing ? `, not known for ${missing} of ${values.length} intervals. ` : ". ");
}

const nearest = (xs, x) => xs.reduce((best, v, i) => Math.abs(v - x) < Math.abs(xs[best] - x) ? i : best, 0);

// key moves pointed with the arrow keys, and Escape clears it.
function key(e, xs, at) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
  if (step) pointed.value = xs[Math.max(0, Math.min(xs.length - 1, at + step))];
  else if (e.key === "Escape" && pointed.value !== null) pointed.value = null;
  else return;
  e.preventDefault();
  e.stopPropagation();
}
