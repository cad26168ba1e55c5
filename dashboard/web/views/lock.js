// One lock: who has it, who waits, and what happened to it.
import { html, useEffect, useState } from "../lib.js";
import { lockOf, history, ready, refused, session, version, watch } from "../fleet.js";
import { count, number, duration } from "../format.js";
import { Empty, Failed, Mode, Since, Text, Token, When, Who, useTick } from "../parts.js";
import { Bar } from "../bar.js";
import { Actions, ForgetButton, ReadOnly } from "../actions.js";
import { href } from "../route.js";
import { leasesOf } from "./lock/leases.js";
import { usePast } from "./lock/past.js";
import { Past, Timeline } from "./lock/timeline.js";
import { Staircase } from "./lock/staircase.js";
import { Histogram } from "./lock/histogram.js";
import { Schedule } from "./lock/schedule.js";
import { Copy } from "./lock/copy.js";

export function Lock({ params }) {
  const name = params.get("name") ?? "";
  if (!name) return html`<h1>One lock</h1><${Empty} title="No lock was named">Choose one from <a href=${href("locks")}>the list</a>.<//>`;
  return html`<${One} key=${name} name=${name} />`;
}

function One({ name }) {
  version.value; // the lock may have changed
  useEffect(() => watch([name]), []);
  const lock = lockOf(name), problem = refused.get(name);
  return html`<h1 class="whole"><${Text} value=${name} /></h1>
    ${problem ? html`<${Failed} problem=${problem} />` : !lock ? html`<p role="status">${ready.value ? "Looking…" : "Not known yet."}</p>` : html`
      <${State} lock=${lock} /><${Holders} lock=${lock} /><${Queue} lock=${lock} /><${Once} lock=${lock} />
      ${lock.schedule && html`<${Schedule} of=${lock.schedule} />`}<${Happened} lock=${lock} />
      <section class="card"><h2>Copy as</h2><${Copy} lock=${lock} /></section>`}`;
}

function State({ lock }) {
  const live = lock.holders.filter((h) => !h.released);
  const word = live.some((h) => h.person) ? "frozen by a person" : live.length ? "held" : lock.holders.length ? "kept closed" : "free";
  return html`<p class="summary"><strong>${word}</strong> <${Mode} of=${lock} />
    <span>${number(live.length, "holder")}</span>
    <span>${count(lock.queueLength)} waiting</span>
    <span>${lock.lastToken === "0" ? "no token was granted lately" : html`last token <code>${lock.lastToken}</code>`}</span>
    <${Actions} lock=${lock} /></p><${ReadOnly} name=${lock.name} />`;
}

// useSome shows the first of many rows, and a button for more of them.
function useSome(all, few) {
  const [shown, setShown] = useState(few);
  return [all.slice(0, shown), all.length > shown && html`<button type="button"
    onClick=${() => setShown(shown + 200)}>Show ${count(Math.min(200, all.length - shown))} more of ${count(all.length)}</button>`];
}

function Holders({ lock }) {
  const [some, button] = useSome(lock.holders, 25);
  return html`<section class="card"><h2>Holders</h2>
    ${some.length === 0 ? html`<p>Nobody has it.</p>` : html`<ul class="told holders">${some.map((h) => html`<li key=${h.fencing_token_str}>
      <span><${Who} holder=${h} />${h.permits > 1 && html` <small>${h.permits} permits</small>`}</span>
      <span>${h.released ? html`granted <${When} at=${h.since} />` : html`for <${Since} at=${h.since} />`}</span>
      <${Bar} holder=${h} /><${Token} value=${h.fencing_token_str} /><${Actions} lock=${lock} holder=${h} /><${Said} by=${h} />
    </li>`)}</ul>`}${button}</section>`;
}

// Said is what somebody says of what they do.
const Said = ({ by }) => html`<span class="said-by">${by.reason && html`<${Text} value=${by.reason} />`}
  ${Object.entries(by.labels ?? {}).filter(([key]) => !key.startsWith("holdfast/")).map(([key, value]) => html` <small><${Text} value=${key + "=" + value} /></small>`)}</span>`;

function Queue({ lock }) {
  const [some, button] = useSome(lock.queue ?? [], 25);
  if (!lock.queueLength) return null;
  return html`<section class="card"><h2>Queue</h2><p>${number(lock.queueLength, "waits", "wait")}, the first in turn first.</p>
    <ol class="told queue">${some.map((p) => html`<li>
      <${Who} holder=${p} /><${Mode} of=${p} /><span>waits for <${Since} at=${p.since} /></span><${Said} by=${p} /></li>`)}</ol>${button}</section>`;
}

function Once({ lock: { name, once } }) {
  if (!once) return null;
  return html`<section class="card"><h2>Do-once</h2><p>${once.state === "done"
    ? html`Done: a result of ${count(once.output_length)} bytes${once.expires > 0 && html`, forgotten <${When} at=${once.expires} />`}. <${ForgetButton} name=${name} />`
    : html`In progress for <${Since} at=${once.since} />${once.holder && html`, by <${Who} holder=${once.holder} />`}.`}</p></section>`;
}

const spans = [["", "all that is known"], [60_000, "a minute"], [900_000, "15 minutes"], [3_600_000, "an hour"], [21_600_000, "6 hours"]];

// Happened asks for no history where there is none.
function Happened({ lock }) {
  const off = history.value === false || session.value?.history === false;
  return off ? html`<${Off} lock=${lock} />` : html`<${Known} lock=${lock} />`;
}

function Known({ lock }) {
  const past = usePast(lock.name, lock.holders);
  const [span, setSpan] = useState("");
  useTick(1000);
  const now = performance.now();
  const leases = leasesOf(past.events, lock.holders, now);
  const from = now - Math.max(1000, !span ? now - Math.min(...past.events.map((e) => e.at), ...leases.map((l) => l.from ?? now)) : span);
  if (past.problem?.status === 501) return html`<${Off} lock=${lock} />`;
  return html`<section class="card"><h2>What happened</h2>
    ${past.problem && html`<${Failed} problem=${past.problem} again=${past.again} />`}
    ${leases.length === 0 ? html`<p>${past.read ? "Nobody has had it in the last 24 hours." : "Looking…"}</p>` : html`
      <label>Show <select value=${span} onChange=${(e) => setSpan(e.target.value)}>${spans.map(([is, words]) => html`<option value=${is}>${words}</option>`)}</select></label>
      <h3>Who had it when</h3><${Timeline} leases=${leases} gaps=${past.events.filter((e) => e.event === "gap")} from=${from} now=${now} />
      ${past.full && html`<p class="quiet">The store keeps the latest 64 events of a name: what was before is not known.</p>`}
      <${Past} leases=${leases} />
      <h3>Tokens</h3><${Staircase} leases=${leases.filter((l) => l.to >= from)} from=${from} now=${now} />
      <h3>How long</h3><div class="pair">
        <${Histogram} title="Held" values=${leases.filter((l) => l.end && l.held !== undefined).map((l) => l.held)} />
        <${Histogram} title="Waited" values=${leases.filter((l) => l.waited !== undefined).map((l) => l.waited)} /></div>`}
  </section>`;
}

// Off says how to have a history, and what is known without.
function Off({ lock }) {
  return html`<section class="card"><h2>What happened</h2>
    <p>The store writes no history down, so there is no timeline. To turn it on, put <code>history=1</code> into the URL of the store,
      here and wherever else it is used, as in <code>holdfast serve --store 'redis://host:6379?history=1'</code>. A quorum has none.</p>
    ${lock.broken?.length > 0 && html`<h3>Broken in the last 24 hours</h3><ul class="told">${[...lock.broken].reverse().map((b) => html`<li key=${b.fencing_token_str}>
      <span class="way broken">! broken <${When} at=${b.at} /></span><${Who} holder=${b.holder} /><${Token} value=${b.fencing_token_str} />
      <strong>by <${Text} value=${b.author} />${b.reason && html`: <${Text} value=${b.reason} />`}</strong></li>`)}</ul>`}
  </section>`;
}
