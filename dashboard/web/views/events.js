// Events as they happen: the latest 500 that pass a filter.
import { html, useEffect, useRef, useState } from "../lib.js";
import { effect } from "../signal.js";
import { duration } from "../format.js";
import { Columns, Empty, Hour, Name, Text, Token, Who } from "../parts.js";
import { keepsHistory, onEvent, recent, trouble } from "../fleet.js";
import { pulse, start } from "../pulse.js";
import { replace } from "../route.js";
import { losses } from "../kinds.js";
import { matches } from "../series.js";

const mostShown = 500;
const eventWords = {
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
        ${Object.entries(eventWords).map(([kind, word]) => html`<option value=${kind}>${word.replace("✕ ", "")}</option>`)}
      </select></label>
      <label>Holder has <input type="search" value=${filter.holder} onInput=${set("holder")} /></label>
      <button type="button" onClick=${pause}>${paused ? `Resume (${missed} new)` : "Pause"}</button>
    </form>
    ${keepsHistory.value === false && html`<${Empty} title="There are no events">The store keeps no history. Open it with <code>history=1</code> in its URL, here and in every program that uses it.<//>`}
    ${trouble.value && html`<p class="mark">✕ The ${trouble.value.of} is down: what happens now may be missing here.</p>`}
    ${rows.every((e) => marks[e.event]) && keepsHistory.value && html`<${Empty} title="No events yet">Nothing that matches has happened since this page was opened. New events appear here.<//>`}
    ${keepsHistory.value !== false && html`<table class="cards log" aria-label="Events, the latest first">
      <${Columns} of=${["Time", "Event", "Lock", "Who", "After", "Token", "Why"]} />
      <tbody>${rows.map((e) => html`<${EventRow} key=${e.id ?? e.event + e.at} event=${e} />`)}</tbody></table>`}`;
}

// useRows returns the rows that pass a filter, the latest first. While the view is paused, the rows
// stay as they are, and new events are counted.
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
  const own = (e) => /^(onetime|holdfast)(\/|$)/.test(e.name) && !filter.prefix; // names of holdfast itself
  const rows = (now.held ?? all()).filter((e) => matches(e, filter) && !own(e))
    .filter((e, i, some) => e.event !== "gap" || some[i - 1]?.event !== "gap").slice(-mostShown).reverse();
  return { rows, missed: now.missed, paused: !!now.held, pause };
}

// away has the times in which this page received no events.
const away = [];
effect(() => {
  const s = trouble.value;
  const last = away.at(-1);
  if (!s) last && (last.until ??= performance.now());
  else if (last?.until !== undefined || !last) away.push({ event: "away", at: s.since });
  away.splice(0, away.length - 50);
});

// all returns all known events. Only losses are known from before the page was opened.
function all() {
  const ids = new Set(recent.map((e) => e.id));
  const past = pulse.losses.filter((e) => !ids.has(e.id));
  return [...past, ...recent, ...away, opened].sort((a, b) => a.at - b.at);
}

const opened = { event: "opened", at: performance.now() };
const marks = {
  gap: () => "events may be missing here",
  away: (e) => `nothing was heard${e.until ? ` for ${duration(e.until - e.at)}` : ""}`,
  opened: () => "this page was opened; only losses are known from before",
};

function EventRow({ event: e }) {
  if (marks[e.event]) return html`<tr class="mark"><td><${Hour} at=${e.at} /></td><td colspan="6">⚠ ${marks[e.event](e)}</td></tr>`;
  const after = e.waited_ms !== undefined ? `waited ${duration(e.waited_ms)}` : e.held_ms !== undefined ? `held ${duration(e.held_ms)}` : "";
  return html`<tr class=${losses.includes(e.event) ? "loss" : ""}>
    <td><${Hour} at=${e.at} /></td><td><b>${eventWords[e.event] ?? e.event}</b></td><th scope="row"><${Name} name=${e.name} /></th>
    <td>${e.holder && html`<${Who} holder=${e.holder} />`}</td><td>${after}</td>
    <td>${e.fencing_token_str && html`<${Token} value=${e.fencing_token_str} />`}</td>
    <td>${e.author && html`by <${Text} value=${e.author} />`}${e.author && e.reason && ": "}${(e.reason || e.holder?.reason) && html`<${Text} value=${e.reason || e.holder.reason} />`}</td></tr>`;
}
