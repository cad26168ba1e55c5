// Who held the lock when: a lane for each holder, a bar for each lease. Past lists it in words.
import { html, useState } from "../../lib.js";
import { clock, count, duration, hour, plain, who } from "../../format.js";
import { Columns, Empty, Hour, Text, Token, Who } from "../../parts.js";
import { times } from "../../times.js";
import { bitsOf, lanesOf, ticksOf, wayOf } from "./leases.js";

// ways has a sign and a word for the state of a lease.
const ways = {
  held: ["", "held now"], released: ["", "released"], completed: ["✓", "done"], expired: ["✕", "expired"],
  lost: ["✕", "lost"], broken: ["✕", "broken"], unknown: ["?", "end not seen"],
};
const pastShown = 10, more = 20;

// colours has the meaning of each colour.
const colours = { held: "held now", ended: "released or done", bad: "expired, lost or broken", unknown: "end not seen" };

// Timeline shows leases and gaps between two instants.
export function Timeline({ leases, gaps, from, to }) {
  const [shown, setShown] = useState(more);
  times.value; // draw the axis again when the clock changes
  const x = (t) => Math.min(100, Math.max(0, (100 * (t - from)) / (to - from)));
  const lanes = lanesOf(leases.filter((l) => l.to >= from && !(l.from > to)));
  if (lanes.length === 0) return html`<${Empty} title="Nobody had it in this time." />`;
  return html`<div class="timeline" role="group" aria-label="Who had the lock when: the list below says the same">
    <div class="lane axis" aria-hidden="true"><svg>${ticksOf(from, to).map(({ at, seconds }) => html`
      <text x=${x(at) + "%"} y="12" text-anchor=${x(at) < 6 ? "start" : x(at) > 94 ? "end" : "middle"}>${seconds ? hour(at + 50) : hour(at + 50).replace(/:\d\d(Z?)$/, "$1")}</text>`)}</svg></div>
    ${lanes.slice(0, shown).map((lane) => html`<div class="lane" key=${lane.key}>
      <span><${Who} holder=${lane.holder} /></span>
      <svg aria-hidden="true">
        ${bitsOf(lane.leases, from, to).map((bit) => html`<g key=${bit.leases[0].token}><title>${plain(barWords(bit))}</title>
          ${bit.waited !== undefined && html`<rect class="waited" x=${bit.waited + "%"} width=${bit.a - bit.waited + "%"} y="11" height="2" />`}
          <rect class=${"bit " + bit.kind} x=${bit.a + "%"} width=${bit.b - bit.a + "%"} y="4" height="16" /></g>`)}
        ${gaps.map((g) => g.at > from && g.at < to && html`<line class="gap" x1=${x(g.at) + "%"} x2=${x(g.at) + "%"} y2="100%"><title>something may be missing here</title></line>`)}
      </svg></div>`)}
    ${lanes.length > shown && html`<button type="button" onClick=${() => setShown(shown + more)}>Show ${Math.min(more, lanes.length - shown)} more of ${count(lanes.length)} holders</button>`}
    <ul class="marks">${Object.entries(colours).map(([kind, title]) => html`<li><svg aria-hidden="true"><rect class=${"bit " + kind} width="100%" height="100%" /></svg> ${title}</li>`)}</ul>
  </div>`;
}

function barWords({ leases, kind }) {
  if (leases.length > 1) return `${count(leases.length)} leases from ${hour(leases[0].from ?? leases[0].to)} to ${hour(leases.at(-1).to)}${kind === "bad" ? ", not all released" : ""}: zoom in to see each`;
  const [l] = leases;
  return `${who(l.holder)}, ${hour(l.from)} to ${l.end ? hour(l.to) : "now"}, held for ${duration(l.held)}, ${ways[wayOf(l)][1]}${l.author ? ` by ${l.author}` : ""}${l.reason ? `: ${l.reason}` : ""}`;
}

// Past lists leases that have ended, the latest first.
export function Past({ leases }) {
  const [all, setAll] = useState(false);
  const rows = leases.filter((l) => l.end).reverse();
  if (rows.length === 0) return html`<p class="quiet">No lease has ended in this time.</p>`;
  return html`<table class="cards log" aria-label="Leases that have ended, the latest first"><${Columns} of=${["From", "To", "How", "Who", "Held", "Waited", "Token", "Why"]} />
    <tbody>${rows.slice(0, all ? rows.length : pastShown).map((l) => html`<tr key=${l.token} class=${l.end in bad ? "loss" : ""}>
      <td><${Hour} at=${l.from} /></td><td>${l.rough && "≤ "}<${Hour} at=${l.to} /></td><td><b>${ways[l.end].join(" ")}</b></td>
      <th scope="row"><${Who} holder=${l.holder} /></th>
      <td title=${clock(l.from)}>${l.held !== undefined && `held ${duration(l.held)}`}</td><td>${l.waited > 0 && `waited ${duration(l.waited)}`}</td><td><${Token} value=${l.token} /></td>
      <td>${l.end === "broken" ? html`<strong>by <${Text} value=${l.author} />${l.reason && html`: <${Text} value=${l.reason} />`}</strong>` : l.holder.reason && html`<${Text} value=${l.holder.reason} />`}
        ${l.opened && html` <span>cooling down, then opened by <${Text} value=${l.opened.author} />${l.opened.reason && html`: <${Text} value=${l.opened.reason} />`}</span>`}</td></tr>`)}</tbody></table>
    ${rows.length > pastShown && html`<button type="button" onClick=${() => setAll(!all)} aria-expanded=${all}>${all ? `Show the latest ${pastShown}` : `Show all ${count(rows.length)}`}</button>`}`;
}

const bad = { expired: 1, lost: 1, broken: 1 };
