// Who had the lock when: a lane for each holder, a bar for each lease. What is drawn is said
// in words by Past.
import { html, useState } from "../../lib.js";
import { count, duration, ago, plain, who } from "../../format.js";
import { Empty, Text, When, Who } from "../../parts.js";
import { lanesOf, stepsOf, ticksOf } from "./leases.js";

// How a lease stands: a sign, and a word.
export const ways = {
  held: ["", "held"], released: ["", "released"], completed: ["✓", "done"], expired: ["∅", "expired"],
  lost: ["×", "lost"], broken: ["!", "broken"], unknown: ["?", "end not seen"],
};
const way = (l) => l.end ?? "held";
const lanesShown = 20, pastShown = 10;

// Timeline shows leases and gaps from an instant to now.
export function Timeline({ leases, gaps, from, now }) {
  const x = (t) => Math.min(100, Math.max(0, (100 * (t - from)) / (now - from)));
  const lanes = lanesOf(leases.filter((l) => l.to >= from));
  if (lanes.length === 0) return html`<${Empty}>Nobody had it in this time.<//>`;
  return html`<div class="timeline" role="group" aria-label="who had the lock when: the list below says the same">
    ${lanes.slice(0, lanesShown).map((lane) => html`<div class="lane" key=${lane.key}>
      <${Who} holder=${lane.holder} />
      <svg aria-hidden="true">
        ${lane.leases.map((l) => html`<${Bit} key=${l.token} l=${l} a=${x(l.from ?? from)} b=${x(l.to)} />`)}
        ${gaps.map((g) => g.at > from && html`<line class="gap" x1=${x(g.at) + "%"} x2=${x(g.at) + "%"} y2="100%"><title>something may be missing here</title></line>`)}
      </svg></div>`)}
    <div class="lane axis" aria-hidden="true"><svg>${ticksOf(now - from).map((age) => html`
      <text x=${x(now - age) + "%"} y="12" text-anchor=${x(now - age) < 8 ? "start" : age ? "middle" : "end"}>${age ? "−" + duration(age) : "now"}</text>`)}</svg></div>
    ${lanes.length > lanesShown && html`<p>The latest ${lanesShown} of ${count(lanes.length)} holders.</p>`}
    <ul class="marks">${[...new Set(leases.map(way))].map((key) => html`
      <li><svg aria-hidden="true"><rect class=${"bit " + key} width="100%" height="100%" /></svg> ${ways[key].join(" ")}</li>`)}</ul>
  </div>`;
}

function Bit({ l, a, b }) {
  const [sign] = ways[way(l)];
  return html`<g><title>${plain(wordsOf(l))}</title>
    <rect class=${"bit " + way(l)} x=${a + "%"} width=${b - a + "%"} y="3" height="14" />
    ${sign && html`<text class=${"sign " + way(l)} x=${b + "%"} y="15" text-anchor=${b > 50 ? "end" : "start"}>${sign}</text>`}</g>`;
}

function wordsOf(l) {
  const by = l.author ? ` by ${l.author}` : "", why = l.reason ? `: ${l.reason}` : "";
  return `${who(l.holder)}, held for ${duration(l.held)}, ${ways[way(l)][1]}${by} ${l.end ? ago(l.to) : ""}${why}`;
}

// Past lists leases, the latest first.
export function Past({ leases }) {
  const [all, setAll] = useState(false);
  const steps = stepsOf(leases);
  const rows = leases.map((l, i) => ({ l, step: steps[i] })).reverse();
  return html`<ol class="told past" reversed aria-label="leases, the latest first">${rows.slice(0, all ? rows.length : pastShown).map(({ l, step }) => html`
    <li key=${l.token}>
      <span class=${"way " + way(l)}>${ways[way(l)].join(" ")} ${l.end && html`<${When} at=${l.to} />`}</span>
      <${Who} holder=${l.holder} />
      <span>held ${l.held === undefined ? "for a time that nobody knows" : `for ${duration(l.held)}`}${l.waited > 0 && `, after a wait of ${duration(l.waited)}`}${l.rough && ", at the latest until then"}</span>
      <span>token <code>${l.token}</code> ${step !== undefined && html`<small>+${step.toLocaleString("en-US")}</small>`}</span>
      ${l.holder.reason && html`<${Text} value=${l.holder.reason} />`}
      ${l.end === "broken" && html`<strong>by <${Text} value=${l.author} />${l.reason && html`: <${Text} value=${l.reason} />`}</strong>`}
      ${l.opened && html`<span>kept closed, then opened by <${Text} value=${l.opened.author} />${l.opened.reason && html`: <${Text} value=${l.opened.reason} />`}</span>`}
    </li>`)}</ol>
    ${rows.length > pastShown && html`<button onClick=${() => setAll(!all)} aria-expanded=${all}>${all ? `Show the latest ${pastShown}` : `Show all ${count(rows.length)}`}</button>`}`;
}
