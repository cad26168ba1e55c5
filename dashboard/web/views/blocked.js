// The holders that keep others waiting, across names.
import { html, useEffect } from "../lib.js";
import { Actions } from "../actions.js";
import { lockOf, locks, ready, watchQueues } from "../fleet.js";
import { Empty, Mode, Name, Since, Text, useTick, Who } from "../parts.js";
import { count, number } from "../format.js";
import { blockages } from "../waits.js";

const mostBlockages = 50, mostSteps = 30, mostPlaces = 5; // shown at most

export function Blocked() {
  useTick(1000); // once a second, however often locks change
  useEffect(watchQueues, []);
  const all = [...locks.values()];
  const found = blockages(all);
  const unknown = all.filter((lock) => lock.queueLength > 0 && !lock.queue).length;
  const circles = found.filter((b) => b.circle).length;
  return html`
    <h1>Blocked by</h1>
    <p class="muted" role="status">${!ready.value || unknown > 0 && found.length === 0 ? "Looking at the queues…"
      : number(found.length, "blocker") + (circles ? `, ${number(circles, "deadlock")}` : "")}</p>
    ${ready.value && !unknown && found.length === 0 && html`<${Empty} title="Nobody is waiting">Chains of waiters are shown here, the blocker first.<//>`}
    ${found.slice(0, mostBlockages).map((b) => html`<${Blockage} key=${b.culprits[0].key} ...${b} />`)}
    ${found.length > mostBlockages && html`<p class="muted">and ${count(found.length - mostBlockages)} more, with fewer waiters</p>`}`;
}

function Blockage({ culprits, circle, certain, steps, waiting, longest }) {
  return html`<section class=${"card blockage" + (circle ? " circle" : "")}>
    <h2>${circle && html`<span class="sign bad">deadlock</span> `}${culprits.slice(0, mostPlaces).map((p, i) => html`${i > 0 && html`<span class="muted"> ${circle ? "→" : "and"} </span>`}<${Who} holder=${p.who} />`)}
      ${culprits.length > mostPlaces && ` and ${count(culprits.length - mostPlaces)} more`}</h2>
    <p>${circle ? (certain ? "They wait for each other: none goes on unless one gives up or is broken." : "They wait for each other, unless another holder releases a permit.")
      : html`${held(culprits[0])}`} <b>${count(waiting)} waiting</b>, longest <${Since} at=${longest.place.since} />:${" "}
      <${Who} holder=${longest.place} />, for <${Name} name=${longest.lock.name} />.
      ${culprits.slice(0, mostPlaces).map((p) => p.holds[0] && html` <${Actions} lock=${lockOf(p.holds[0].lock.name) ?? p.holds[0].lock.of} holder=${p.holds[0].holder} />`)}</p>
    <ul class="steps">${steps.slice(0, mostSteps).map((step) => html`<${Step} key=${step.lock.name} ...${step} />`)}</ul>
    ${steps.length > mostSteps && html`<p class="muted">and ${count(steps.length - mostSteps)} more names</p>`}
  </section>`;
}

// held describes the lease for which others wait.
function held({ who: h, holds }) {
  const { holder } = holds[0];
  if (holder.released) return "Released, and cooling down until its minimum hold ends.";
  if (h.foreign) return "A client that is not holdfast: nothing is known of it.";
  const reason = holder.reason && html`: <${Text} value=${holder.reason} />`;
  return html`${h.person ? "Frozen by a person" : "Held"} for <${Since} at=${holder.since} />${reason}.`;
}

function Step({ lock, depth, by }) {
  return html`<li class=${"depth" + Math.min(depth, 6)}>
    <${Name} name=${lock.name} /> <${Mode} of=${lock} />${depth > 0 && html` <span class="muted">which is held by <${Who} holder=${by} /></span>`}
    <ol>${lock.queue.slice(0, mostPlaces).map((place) => html`<li>
      <${Who} holder=${place} /> <${Mode} of=${place} /> <span class="muted">waiting</span> <${Since} at=${place.since} /></li>`)}</ol>
    ${lock.queue.length > mostPlaces && html`<p class="muted">and ${count(lock.queue.length - mostPlaces)} more</p>`}
  </li>`;
}
