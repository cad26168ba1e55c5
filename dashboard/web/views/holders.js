// Everything that one process, person or host holds and waits for.
import { html, useEffect } from "../lib.js";
import { locks, ready, watch, watchQueues } from "../fleet.js";
import { Empty, Mode, Name, Since, Text, Token, Who, useTick } from "../parts.js";
import { count, number, who } from "../format.js";
import { href, replace } from "../route.js";
import { belongs, group, partyOf } from "../waits.js";
import { BreakAll } from "../actions.js";
import { Bar } from "../bar.js";

const mostParties = 50, mostRows = 20, mostRowsOfOne = 500; // shown at most

export function Holders({ params }) {
  useTick(1000); // once a second, however often locks change
  useEffect(watchQueues, []);
  const wanted = Object.fromEntries([...params].filter(([key]) => key !== "text"));
  const text = params.get("text") ?? "";
  const all = parties(locks.values(), (h) => belongs(h, wanted) && (!text || who(h).toLowerCase().includes(text.toLowerCase())));
  const shown = all.slice(0, mostParties);
  const rows = all.length === 1 ? mostRowsOfOne : mostRows;
  useWatched(shown.flatMap((p) => [...p.holds.slice(0, rows), ...p.waits.slice(0, rows)]).map(({ lock }) => lock.name));
  const one = Object.keys(wanted).length > 0;
  return html`
    <h1>${one ? html`Held by <${Text} value=${title(wanted)} />` : "Holders"}</h1>
    <form class="row" role="search" onSubmit=${(event) => event.preventDefault()}>
      ${one ? html`<a href=${href("holders")}>All holders</a>${wanted.host && Object.keys(wanted).length > 1
        && html`<a href=${href("holders", { host: wanted.host })}>All of <${Text} value=${wanted.host} /></a>`}`
      : html`<label>Holder <input type="search" value=${text} onInput=${(event) => replace("holders", { text: event.target.value })}
          placeholder="caller, user, host, program…" /></label>`}
      <span class="muted" role="status">${!ready.value ? "Loading…" : `${number(all.length, "holder")}`
        + (all.length > mostParties ? `, the first ${mostParties} are shown: filter for others` : "")}</span>
    </form>
    ${ready.value && all.length === 0 && html`<${Empty} title=${one || text ? "Nothing at present" : "Nobody holds a lock"}>${
      one || text ? "This holder holds nothing, and is waiting for nothing." : "Holders appear here as they take locks."}<//>`}
    ${one && html`<p><${BreakAll} of=${title(wanted)} leases=${all.flatMap((p) => p.holds)} /></p>`}
    ${shown.map((p) => html`<${Party} key=${p.key} rows=${rows} ...${p} />`)}`;
}

const title = ({ caller, host, pid, user, label, program, person }) =>
  who({ caller, host, pid: Number(pid) || 0, user, label, program, person: Boolean(person) });

// parties groups leases and places by party. Parties that hold and wait come first.
function parties(locks, wanted) {
  const all = new Map();
  const add = (kind, lock, h, i) => {
    if (!wanted(h)) return;
    const key = partyOf(h, lock, i);
    if (!all.has(key)) all.set(key, { key, who: h, holds: [], waits: [] });
    all.get(key)[kind].push({ lock, h, i });
  };
  for (const lock of locks) {
    lock.holders.forEach((h, i) => add("holds", lock, h, i));
    lock.queue?.forEach((place, i) => add("waits", lock, place, i));
  }
  const rank = (p) => (p.holds.length && p.waits.length ? 2 : p.holds.length ? 1 : 0);
  return [...all.values()].sort((a, b) => rank(b) - rank(a) || b.holds.length - a.holds.length || (a.key < b.key ? -1 : 1));
}

function useWatched(names) {
  const some = [...new Set(names)].sort().slice(0, 256);
  useEffect(() => watch(some), [some.join("\n")]);
}

function Party({ who: h, holds, waits, rows }) {
  const more = Math.max(0, holds.length - rows) + Math.max(0, waits.length - rows);
  const name = html`<${Text} value=${who(h)} />`;
  return html`<section class="card party">
    <h2>${h.person && html`<span class="sign">person</span> `}${h.foreign ? name : html`<a href=${href("holders", group(h))}>${name}</a>`}${" "}
      <span class="muted">${[holds.length && `holds ${count(holds.length)}`, waits.length && `waiting for ${count(waits.length)}`].filter(Boolean).join(", ")}</span></h2>
    <ul class="rows">
      ${holds.slice(0, rows).map(({ lock, h }) => html`<li key=${lock.name + h.fencing_token_str}>
        <span class="what"><${Name} name=${lock.name} /> <${Mode} of=${lock} /> ${h.released && html`<span class="sign quiet">cooling down</span> `}
          ${h.reason && html`<${Text} value=${h.reason} />`}</span>
        <span>held for <${Since} at=${h.since} /></span> <${Bar} holder=${h} />
        <span class=${lock.queueLength ? "warn" : "muted"}>${lock.queueLength ? `${count(lock.queueLength)} waiting` : "–"}</span>
        <${Token} value=${h.fencing_token_str} /></li>`)}
      ${waits.slice(0, rows).map(({ lock, h, i }) => html`<li key=${"w" + lock.name + i}>
        <span class="what"><span class="sign warn">waiting</span> <${Name} name=${lock.name} /> <${Mode} of=${h} /> ${h.reason && html`<${Text} value=${h.reason} />`}</span>
        <span>waiting <${Since} at=${h.since} /></span>
        <span class="muted">place ${i + 1} of ${lock.queueLength}${lock.holders[0] && html`, behind <${Who} holder=${lock.holders[0]} />`}</span></li>`)}
    </ul>
    ${more > 0 && html`<p class="muted">and ${count(more)} more${rows === mostRows && ": the link above shows this holder alone"}</p>`}
  </section>`;
}
