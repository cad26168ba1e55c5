// One lock: its holders, its queue, and its history.
import { html, useEffect, useState } from "../lib.js";
import { lockOf, keepsHistory, ready, refused, session, version, watch } from "../fleet.js";
import { ago, count, duration, number, whole } from "../format.js";
import { At, Empty, Failed, Hour, Mode, Since, Text, Token, When, Who, useTick } from "../parts.js";
import { now } from "../now.js";
import { Bar } from "../bar.js";
import { Actions, ForgetButton, ReadOnly } from "../actions.js";
import { href } from "../route.js";
import { leasesOf } from "./lock/leases.js";
import { usePast } from "./lock/past.js";
import { Past, Timeline } from "./lock/timeline.js";
import { Histogram } from "./lock/histogram.js";
import { Schedule } from "./lock/schedule.js";
import { Copy, CopyLink } from "./lock/copy.js";

export function Lock({ params }) {
  const name = params.get("name") ?? "";
  if (!name) return html`<h1>One lock</h1><${Empty} title="No lock is named">Choose one from <a href=${href("locks")}>the list</a>, or press <kbd>/</kbd>.<//>`;
  return html`<${One} key=${name} name=${name} />`;
}

function One({ name }) {
  version.value; // the lock may have changed
  useEffect(() => watch([name]), []);
  const lock = lockOf(name), problem = refused.get(name);
  return html`<h1 class="whole"><${Text} value=${name} /></h1>
    ${problem ? html`<${Failed} problem=${problem} />` : !lock ? html`<p role="status">${ready.value ? "Looking…" : "Not known yet."}</p>` : html`
      <${State} lock=${lock} /><${Broken} lock=${lock} /><${LockHolders} lock=${lock} /><${Queue} lock=${lock} /><${LockOnce} lock=${lock} />
      ${lock.schedule && html`<${Schedule} of=${lock.schedule} />`}<${Happened} lock=${lock} />
      <section class="card"><h2>Copy as</h2><${Copy} lock=${lock} /></section>`}`;
}

// State shows the state of the lock and the buttons for actions. The buttons for a holder are here
// if there is only one holder, and otherwise in the list of holders.
function State({ lock }) {
  const live = lock.holders.filter((h) => !h.released), [one] = lock.holders;
  const word = live.some((h) => h.person) ? "frozen by a person" : live.length ? "held" : lock.holders.length ? "cooling down" : "free";
  return html`<p class="summary"><strong class=${"is-" + word.split(" ")[0]}>${word}</strong> <${Mode} of=${lock} />
    <span>${live.length > 1 && number(live.length, "holder")}</span> <b class=${lock.queueLength ? "warn" : ""}>${count(lock.queueLength)} waiting</b></p>
    <p class="summary">${lock.holders.length === 1 && html`<${Actions} lock=${lock} holder=${one} />`}<${Actions} lock=${lock} /><${CopyLink} /></p><${ReadOnly} name=${lock.name} />`;
}

// Broken shows who broke the lock in the last 24 hours, and why.
function Broken({ lock: { broken = [] } }) {
  return broken.length > 0 && html`<section class="card"><h2>Broken in the last 24 hours</h2><ul class="events">${[...broken].reverse().slice(0, 5).map((b) => html`<li class="loss" key=${b.fencing_token_str}>
    <${At} at=${b.at} /> <b>✕ broken</b> <strong>by <${Text} value=${b.author} />${b.reason && html`: <${Text} value=${b.reason} />`}</strong> <span>was held by <${Who} holder=${b.holder} /></span></li>`)}</ul></section>`;
}

// useSome returns the first of many rows, and a button that shows more of them.
function useSome(all, few) {
  const [shown, setShown] = useState(few);
  return [all.slice(0, shown), all.length > shown && html`<button type="button"
    onClick=${() => setShown(shown + 200)}>Show ${count(Math.min(200, all.length - shown))} more of ${count(all.length)}</button>`];
}

function LockHolders({ lock }) {
  const [some, button] = useSome(lock.holders, 25);
  return html`<section class="card"><h2>${lock.holders.length > 1 ? "Holders" : "Holder"}</h2>
    ${some.length === 0 ? html`<p>Nobody holds it.</p>` : html`<ul class="told holders">${some.map((h) => html`<li key=${h.fencing_token_str}>
      <span class="lead"><${Who} holder=${h} />${h.permits > 1 && html` <small>${h.permits} permits</small>`}</span>
      <span>${h.released ? "granted " : html`held <b><${Since} at=${h.since} /></b> since `}<${Hour} at=${h.since} /></span>
      <${Bar} holder=${h} /><span class="muted"><${Term} of=${h} /></span><span>token <${Token} value=${h.fencing_token_str} /></span>
      ${lock.holders.length > 1 && html`<${Actions} lock=${lock} holder=${h} />`}<${Said} by=${h} />
    </li>`)}</ul>`}${button}</section>`;
}

// Term shows the TTL of a lease, when it was renewed, and when it ends.
function Term({ of: { ttl, renewed, expires, since, person } }) {
  useTick(1000);
  if (typeof expires !== "number") return "";
  if (person) return ago(expires);
  if (renewed === undefined) return html`ends <${At} at=${expires} />`;
  return html`TTL ${duration(ttl)}, ${renewed - since < 1000 ? "not renewed yet" : `renewed ${whole(now() - renewed)} ago`}, ends <${Hour} at=${expires} />`;
}

// Said shows the reason and the labels of a holder or a waiter.
const Said = ({ by }) => html`<span class="said-by">${by.reason && html`<${Text} value=${by.reason} />`}
  ${Object.entries(by.labels ?? {}).filter(([key]) => !key.startsWith("holdfast/")).map(([key, value]) => html` <small><${Text} value=${key + "=" + value} /></small>`)}</span>`;

function Queue({ lock }) {
  const [some, button] = useSome(lock.queue ?? [], 25);
  if (!lock.queueLength) return null;
  return html`<section class="card"><h2>Queue</h2><p>${count(lock.queueLength)} waiting, next in line first.</p>
    <ol class="told queue">${some.map((p) => html`<li>
      <span class="lead"><${Who} holder=${p} /> <${Mode} of=${p} /></span><span>waiting <b><${Since} at=${p.since} /></b> since <${Hour} at=${p.since} /></span><${Said} by=${p} /></li>`)}</ol>${button}</section>`;
}

function LockOnce({ lock: { name, once } }) {
  if (!once) return null;
  return html`<section class="card"><h2>Do-once</h2><p>${once.state === "done"
    ? html`Done: a result of ${count(once.output_length)} bytes${once.expires > 0 && html`, expires <${When} at=${once.expires} />`}. <${ForgetButton} name=${name} />`
    : html`In progress for <${Since} at=${once.since} />${once.holder && html`, by <${Who} holder=${once.holder} />`}.`}</p></section>`;
}

// Happened requests the history only if the store keeps one.
function Happened({ lock }) {
  const off = keepsHistory.value === false || session.value?.history === false;
  return off ? html`<${Off} />` : html`<${Known} lock=${lock} />`;
}

const ranges = [[0, "all"], [900_000, "15 m"], [3_600_000, "1 h"], [21_600_000, "6 h"], [86_400_000, "24 h"]]; // ms; 0 for all

function Known({ lock }) {
  const past = usePast(lock.name, lock.holders);
  const [view, setView] = useState({ span: 0, back: 0 }); // ms shown, 0 for all; ms from the end of that time to now
  useTick(1000);
  const at = now();
  const leases = leasesOf(past.events, lock.holders, at);
  if (past.problem?.status === 501) return html`<${Off} />`;
  const first = Math.min(...past.events.map((e) => e.at), ...leases.map((l) => l.from ?? at));
  const span = view.span || Math.max(1000, at - first), to = at - view.back, from = to - span;
  const shown = leases.filter((l) => l.to >= from && !(l.from > to));
  const move = (title, sign, next) => html`<button type="button" aria-label=${title} title=${title} onClick=${() => setView({ span: Math.max(1000, next.span ?? span), back: Math.max(0, next.back ?? view.back) })}>${sign}</button>`;
  return html`<section class="card"><h2>What happened</h2>
    ${past.problem && html`<${Failed} problem=${past.problem} again=${past.again} />`}
    ${leases.length === 0 ? html`<p>${past.read ? "Nobody has held it in the last 24 hours." : "Looking…"}</p>` : html`
      <div class="row spans" role="group" aria-label="Time shown">${ranges.map(([ms, words]) => html`<button type="button" aria-pressed=${view.back === 0 && view.span === ms}
        onClick=${() => setView({ span: ms, back: 0 })}>${words}</button>`)}
        ${move("Earlier", "◀", { back: view.back + span / 2 })}${move("Later", "▶", { back: view.back - span / 2 })}
        ${move("Zoom in", "+", { span: span / 4, back: view.back + span * 3 / 8 })}${move("Zoom out", "−", { span: span * 4, back: view.back - span * 3 / 2 })}</div>
      <${Timeline} leases=${leases} gaps=${past.events.filter((e) => e.event === "gap")} from=${from} to=${to} />
      <${Past} leases=${shown} />
      ${past.full && html`<p class="quiet">The store keeps the latest events of a name only: what was before is not known.</p>`}
      <p class="quiet">Each lease has a greater token than all before it${lock.lastToken !== "0" && html`; the last was <code>${lock.lastToken}</code>`}.</p>
      <h3>How long</h3><div class="pair">
        <${Histogram} title="Held" values=${leases.filter((l) => l.end && l.held !== undefined).map((l) => l.held)} />
        <${Histogram} title="Waited" values=${leases.filter((l) => l.waited !== undefined).map((l) => l.waited)} /></div>`}
  </section>`;
}

// Off explains how to turn the history on.
const Off = () => html`<section class="card"><h2>What happened</h2>
    <p>The store keeps no history, so there is no timeline. To turn it on, put <code>history=1</code> into the URL of the store,
      here and wherever else it is used, as in <code>holdfast serve --store 'redis://host:6379?history=1'</code>. A quorum has none.</p></section>`;
