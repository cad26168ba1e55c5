// What happens, as it happens: the latest 500 events that a filter asks for.
import { effect, html, useEffect, useRef, useState } from "../lib.js";
import { duration } from "../format.js";
import { Empty, Name, Text, Token, When, Who } from "../parts.js";
import { history, onEvent, recent, stale } from "../fleet.js";
import { pulse, start } from "../pulse.js";
import { replace } from "../route.js";
import { losses } from "../kinds.js";
import { matches } from "../series.js";

const shown = 500;
const words = {
  acquired: "acquired", handed_over: "handed over", released: "released", completed: "completed", queued: "queued",
  gave_up: "gave up waiting", expired: "✕ expired", lost: "✕ lost", broken: "✕ broken",
};

export function Events({ params }) {
  start();
  const filter = Object.fromEntries(["prefix", "kind", "holder"].map((k) => [k, params.get(k) ?? ""]));
  const { rows, missed, paused, pause } = useRows(filter);
  const set = (key) => (e) => replace("events", { ...filter, [key]: e.target.value });
  return html`
    <h1>Events</h1>
    <form class="filters" role="search" onSubmit=${(e) => e.preventDefault()}>
      <label>Name begins with <input type="search" data-filter value=${filter.prefix} onInput=${set("prefix")} /></label>
      <label>Kind <select value=${filter.kind} onChange=${set("kind")}>
        <option value="">all</option><option value="losses">losses</option>
        ${Object.entries(words).map(([kind, word]) => html`<option value=${kind}>${word.replace("✕ ", "")}</option>`)}
      </select></label>
      <label>Holder has <input type="search" value=${filter.holder} onInput=${set("holder")} /></label>
      <button type="button" onClick=${pause}>${paused ? `Resume (${missed} new)` : "Pause"}</button>
    </form>
    ${history.value === false && html`<${Empty} title="There are no events">The store keeps no history. Open it with <code>history=1</code> in its URL, here and in every program that uses it.<//>`}
    ${stale.value && html`<p class="mark">✕ Away from the server: what happens now will be missing here.</p>`}
    ${rows.every((e) => marks[e.event]) && history.value && html`<${Empty} title="Nothing has happened">Of what the filter asks for, since this page was opened. What happens next appears here.<//>`}
    ${history.value !== false && html`<ol class="events" aria-label="Events, the latest first">${rows.map((e) => html`<${Row} key=${e.id ?? e.event + e.at} event=${e} />`)}</ol>`}`;
}

// useRows returns the rows of a filter, the latest first. While it is paused they stay as
// they are, and what is new is counted.
function useRows(filter) {
  const [, draw] = useState(0);
  const now = useRef({}).current; // {held, missed, filter}
  now.filter = filter;
  useEffect(() => {
    let timer = 0;
    const stop = onEvent((e) => {
      if (now.held && matches(e, now.filter)) now.missed++;
      timer ||= setTimeout(() => { timer = 0; draw((n) => n + 1); }, 200);
    });
    return () => { stop(); clearTimeout(timer); };
  }, []);
  const pause = () => {
    now.held = now.held ? null : all();
    now.missed = 0;
    draw((n) => n + 1);
  };
  const rows = (now.held ?? all()).filter((e) => matches(e, filter))
    .filter((e, i, some) => e.event !== "gap" || some[i - 1]?.event !== "gap").slice(-shown).reverse();
  return { rows, missed: now.missed, paused: !!now.held, pause };
}

// away has the times at which this page did not hear of events.
const away = [];
effect(() => {
  const s = stale.value;
  const last = away.at(-1);
  if (!s) last && (last.until ??= performance.now());
  else if (last?.until !== undefined || !last) away.push({ event: "away", at: s.since });
  away.splice(0, away.length - 50);
});

// all has what is known: before the page was opened, the losses.
function all() {
  const ids = new Set(recent.map((e) => e.id));
  const past = pulse.losses.filter((e) => !ids.has(e.id));
  return [...past, ...recent, ...away, opened].sort((a, b) => a.at - b.at);
}

const opened = { event: "opened", at: performance.now() };
const marks = {
  gap: () => "something may have been missed here",
  away: (e) => `the server was away${e.until ? ` for ${duration(e.until - e.at)}` : ""}`,
  opened: () => "this page was opened: of the time before it shows losses only",
};

function Row({ event: e }) {
  if (marks[e.event]) return html`<li class="mark"><${When} at=${e.at} /> ⚠ ${marks[e.event](e)}</li>`;
  return html`<li class=${losses.includes(e.event) ? "loss" : ""}>
    <${When} at=${e.at} /> <b>${words[e.event] ?? e.event}</b> <${Name} name=${e.name} /> <span>${e.holder && html`<${Who} holder=${e.holder} />`}${more(e)}</span></li>`;
}

// more says what else there is to an event.
function more(e) {
  return [
    e.fencing_token_str && html`, token <${Token} value=${e.fencing_token_str} />`,
    e.waited_ms !== undefined && `, waited for ${duration(e.waited_ms)}`,
    e.held_ms !== undefined && `, held for ${duration(e.held_ms)}`,
    e.author && html`, by <${Text} value=${e.author} />`,
    e.reason && html`: <${Text} value=${e.reason} />`,
  ];
}
