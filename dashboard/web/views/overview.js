// The overview: what needs attention, the counts of leases, waiters and losses, the state of the
// store, and charts of the last 15 minutes, hour or day.
import { html, useEffect, useMemo } from "../lib.js";
import { href } from "../route.js";
import { count, duration, instantOf, number, plain, rate, who, whole } from "../format.js";
import { keepsHistory, locks, ready, trouble, version, watch } from "../fleet.js";
import { At, Day, Hour, Name, Since, Text, Who, useTick } from "../parts.js";
import { forAll, partly, useAnswer, useJobs } from "../answer.js";
import { attention, dying } from "../attention.js";
import { Chart } from "../charts.js";
import { beat, pulse, start, spans } from "../pulse.js";
import { census, countBack, granted, lossesOf, percentile, placeOf, sum } from "../series.js";
import { losses } from "../kinds.js";
import { now } from "../now.js";

const recently = 5 * 60_000;

export function Overview() {
  start();
  useTick(1000);
  version.value; // the locks have changed
  const all = census(locks, now());
  const late = dying(locks, now()).filter(({ lock }) => now() - lock.seen < 12_000); // seen in a recent list
  const watched = [...all.queues, ...late.map(({ lock }) => lock.name)].slice(0, 128); // only a look shows how long waiters have waited
  useEffect(() => watch(watched), [watched.join("\n")]);
  const store = useAnswer(forAll("v1/store"), {}, trouble.value ? 2000 : 15_000);
  const jobs = useJobs();
  const charts = useMemo(() => html`<${Charts} />`, []); // it draws itself again
  return html`
    <h1>Overview</h1>
    <${Attention} all=${all} store=${store.answer} jobs=${jobs} />
    ${partly() && html`<p class="mark">⚠ You may not read all names: this counts those that you may, from when this page was opened.</p>`}
    ${pulse.problem && html`<p class="mark">⚠ The server does not know the past, so the charts begin when this page was opened: <${Text} value=${pulse.problem.detail} />.</p>`}
    <ul class="tiles">${tiles(all)}<${StoreTile} ...${store} /></ul>
    ${charts}
    <${Contended} />
    <${Lost} />
    <${Store} ...${store} />`;
}

// needs has the words for each kind of problem.
const needs = {
  deadlock: ["deadlock", ({ waiting }) => `${count(waiting)} waiting for each other`],
  blocked: ["blocked", ({ waiting }) => `${count(waiting)} waiting, the longest`],
  renewal: ["not renewed", ({ expires }) => `expires in ${whole(expires - now())}, last renewed`],
  lost: ["lost", ({ count: n }) => (n > 1 ? `${count(n)} leases, the latest` : "its lease has ended")],
  freeze: ["hold expired", () => "nobody has released it"],
  failing: ["failing", () => ""], unled: ["no leader", () => "no run will be begun"],
  missed: ["missed", ({ count: n }) => number(n, "run")], store: ["store", () => ""],
};

// Attention lists what needs attention, or shows that all is well and what was checked.
function Attention({ all, store, jobs }) {
  if (!ready.value) return html`<section class="card attention" aria-label="Needs attention"><p>Looking…</p></section>`;
  const found = attention({ locks, losses: pulse.losses, schedules: jobs.schedules, lately: (day) => instantOf(day) > now() - 86_400_000, findings: store?.diagnosis?.findings, since: now() - spans["15 m"].ms, at: now() });
  const lost = trouble.value;
  if (found.length === 0 && !lost) {
    const looked = [number(all.names, "lock"), all.waiter ? `${number(all.waiting, "waiter")} (the longest ${duration(now() - all.waiter.since)})` : number(all.waiting, "waiter"), "deadlocks, renewals, losses",
      jobs.answer && number(jobs.schedules.length, "schedule"), store?.diagnosis && `the store, checked ${duration(store.checked_ago_ms)} ago`].filter(Boolean);
    return html`<section class="card attention well" aria-label="Needs attention"><p><b class="good">✓ All is well.</b> <span class="muted">Looked at: ${looked.join(" · ")}.</span></p></section>`;
  }
  return html`<section class="card attention" aria-labelledby="needs"><h2 id="needs">Needs attention <small>${count(found.length + (lost ? 1 : 0))}</small></h2><ul>
    ${lost && html`<li class="worst"><b class="bad">✕ ${lost.of} down</b> <span>the rest of this page is as of then</span> <span class="when">since <${Hour} at=${lost.since} /></span></li>`}
    ${found.slice(0, 12).map((a) => html`<${Item} key=${a.kind + a.name + a.text} ...${a} />`)}</ul>
    ${found.length > 12 && html`<p class="muted">and ${count(found.length - 12)} more</p>`}</section>`;
}

function Item(a) {
  const [word, more] = needs[a.kind];
  const { held } = a;
  return html`<li class=${a.bad ? "worst" : ""}><b class=${a.bad ? "bad" : "warn"}>${a.bad ? "✕" : "⚠"} ${word}</b>
    <span>${a.name !== undefined && html`<${Name} name=${a.name} /> `}${more(a)}${a.text && html`<${Text} value=${a.text} />`}</span>
    <span class="when">${a.waiting && html`<b><${Since} at=${a.since} /></b> since `}${a.day ? html`<${Day} at=${a.day} />` : a.since !== undefined && html`<${a.waiting ? Hour : At} at=${a.since} />`}</span>
    ${a.holder && html`<span>${a.kind === "blocked" ? "behind " : "held by "}<${Who} holder=${a.holder} />${held?.person && held.expires && html`, hold until <${At} at=${held.expires} />`}${held?.reason && html`: <${Text} value=${held.reason} />`}${a.waiting && html` <a href=${href("blocked")}>Blocked by</a>`}</span>`}
    ${a.kind === "store" && html`<a href="#/overview" onClick=${toStore}>Store</a>`}</li>`;
}

function toStore(event) {
  event.preventDefault();
  document.getElementById("store").scrollIntoView();
}

// Tile is one number with its unit, a title that explains it, and a link to more about it.
function Tile({ label, value, more, title, to, bad, onClick }) {
  return html`<li class=${bad ? "tile loss" : "tile"}><a href=${to} title=${title} onClick=${onClick}>
    <span>${label}</span> <b>${value}</b> <small>${more}</small></a></li>`;
}

const bound = (ms, bounds) => (ms === null ? "–" : ms === Infinity ? "> " + duration(bounds.at(-1)) : ms ? "≤ " + duration(ms) : "0 ms").replaceAll(" ", "\u00a0");
const off = "known with history only";
const state = (s) => href("locks", { state: s });

function tiles(all) {
  const { buckets, bounds } = pulse.series;
  const full = buckets.slice(0, -1).filter((b) => b.start > now() - recently);
  const flow = full.filter((b) => b.start > now() - 60_000), waits = sum(full, bounds).waits, lost = sum((pulse.long ?? pulse.series).buckets, bounds);
  for (const ms of all.waits) waits[placeOf(ms, bounds)]++;
  const told = keepsHistory.value !== false;
  const n = lossesOf(lost), unsure = lost.missed || trouble.value, { title } = spans[pulse.range.value];
  return html`
    <${Tile} label="Held" value=${number(all.names, "lock")} more=${number(all.held, "lease")} to=${state("held")}
      title="Locks that somebody holds, and how many leases: shared locks and semaphores have several" />
    <${Tile} label="Waiting" value=${number(all.waiting, "waiter")} more=${"for " + number(all.queues.length, "lock")} to=${state("contended")}
      title="Places in the queues of all locks" />
    <${Tile} label="Longest waiting" value=${all.waiter ? whole(now() - all.waiter.since) : all.waiting ? "…" : "nobody"} more=${all.waiter ? html`<${Text} value=${all.waiter.name} />` : "is waiting"}
      to=${all.waiter ? href("lock", { name: all.waiter.name }) : state("contended")} title=${all.waiter ? plain(who(all.waiter)) : ""} />
    <${Tile} label="Wait" value=${[0.5, 0.95].map((p) => html`<span><small>p${100 * p}</small> ${told ? bound(percentile(waits, bounds, p), bounds) : "–"}</span>`)}
      more=${told ? "in 5 m, and now" : off} to=${href("blocked")} title="Half, and 95 of 100, have waited no longer than that: of all leases granted in 5 minutes, and of those who are waiting now by what they have waited so far" />
    <${Tile} label="Acquisitions" value=${told && flow.length ? rate(flow.reduce((s, b) => s + granted(b), 0) / (flow.reduce((s, b) => s + b.every, 0) / 1000)) : "–"}
      more=${told ? "in the last minute" : off} to=${href("events", { kind: "acquired" })} title="Leases granted in a second, on average, with and without waiting" />
    <${Tile} label="Losses" value=${!told ? "–" : n ? `✕ ${unsure ? "at least " : ""}${number(n, "loss", "losses")}` : unsure ? "unknown" : "0 losses"} bad=${n} to=${href("events", { kind: "losses" })}
      more=${n ? losses.filter((k) => lost[k]).map((k) => `${count(lost[k])} ${k}`).join(", ") : told ? "in " + title : off}
      title="Leases that ended before their holders released them" />
    <${Tile} label="Longest held" value=${all.holder ? whole(now() - all.holder.since) : "nothing"} more=${all.holder ? html`<${Text} value=${all.holder.name} />` : "is held"}
      to=${all.holder ? href("lock", { name: all.holder.name }) : state("held")} title=${all.holder ? plain(who(all.holder)) : ""} />`;
}

// Lost lists the latest losses.
function Lost() {
  if (!pulse.losses.length) return "";
  return html`<section class="card" aria-label="Losses"><h2>Latest losses</h2><ol class="events">${pulse.losses.slice(0, 5).map((e) => html`
    <li class="loss" key=${e.id}><${At} at=${e.at} /> <b>✕ ${e.event}</b> <${Name} name=${e.name} /> <span>${e.holder && html`<${Who} holder=${e.holder} />`}${
      e.author && html`, by <${Text} value=${e.author} />`}${e.reason && html`: <${Text} value=${e.reason} />`}</span></li>`)}</ol></section>`;
}

// Contended lists the locks for which waiters waited longest in all.
function Contended() {
  const rows = pulse.contended;
  if (!rows?.length) return "";
  return html`<section class="card" aria-label="Contention"><h2>Most contended in the last hour</h2>
    <table class="cards" aria-label="Most contended locks"><thead><tr><th scope="col">Lock</th><th scope="col" class="number">Waited in all</th><th scope="col" class="number">Waits</th><th scope="col" class="number">Longest</th><th scope="col" class="number">Waiting now</th></tr></thead>
    <tbody>${rows.slice(0, 8).map((r) => html`<tr key=${r.name}><th scope="row"><${Name} name=${r.name} /></th>
      <td class="number" data-is="Waited in all"><b>${duration(r.waited_ms)}</b></td><td class="number" data-is="Waits">${count(r.waits)}${r.gave_up > 0 && html` <small>${count(r.gave_up)} gave up</small>`}</td><td class="number" data-is="Longest">${duration(r.longest_ms)}</td><td class="number" data-is="Waiting now">${count(locks.get(r.name)?.queueLength)}</td></tr>`)}</tbody></table></section>`;
}

function Charts() {
  beat.value; // changes each second
  const { buckets, bounds } = pulse.long ?? pulse.series;
  const span = spans[pulse.range.value];
  const lines = series(buckets, bounds, census(locks, now()));
  const told = keepsHistory.value !== false;
  const chart = (name, its, bars) => html`<${Chart} title=${name} lines=${its} xs=${lines.xs} span=${span} bars=${bars} />`;
  return html`<div class="row spans" role="group" aria-label="Time of the charts">${Object.keys(spans).map((key) => html`
      <button type="button" aria-pressed=${key === pulse.range.value} onClick=${() => { pulse.range.value = key; }}>${key}</button>`)}</div>
    <section class="charts" aria-label=${"The last " + span.title}>
    ${told && chart("Acquisitions per second", lines.flow)}
    ${chart("Held and waiting (leases, waiters)", lines.held)}
    ${told && chart("Wait for a lock", lines.waits)}
    ${told && chart("Losses (leases)", lines.losses, true)}</section>`;
}

// series makes the lines of all charts. Grants, waits and losses are unknown in a bucket that may
// lack events; grants and waits are also unknown in the present bucket.
function series(buckets, bounds, { held, waiting }) {
  const end = now();
  const at = countBack(buckets, { held, waiting });
  const over = (b, i) => i < buckets.length - 1 && !b.gap;
  const line = (label, tone, least, say, f, axis) => ({ label, tone, least, say, axis, values: buckets.map((b, i) => f(b, i) ?? null) });
  const wait = (p) => (b, i) => {
    const ms = over(b, i) ? percentile(b.waits, bounds, p) : null;
    return ms === Infinity ? bounds.at(-1) : ms;
  };
  return {
    xs: buckets.map((b) => Math.min(0, (b.start + b.every - end) / 1000)),
    flow: [line("granted", "accent", 1, rate, (b, i) => over(b, i) ? granted(b) * 1000 / b.every : null)],
    held: [line("held", "accent", 4, (n) => number(n, "lease"), (b, i) => at[i]?.held, count), line("waiting", "warn", 4, (n) => number(n, "waiter"), (b, i) => at[i]?.waiting)],
    waits: [line("p50", "accent", 10, duration, wait(0.5)), line("p95", "warn", 10, duration, wait(0.95)), line("waiting now", "person", 10, duration, (b) => b.seen?.longest)],
    losses: [line("✕ lost", "bad", 4, (n) => number(n, "lease"), (b) => b.gap ? null : lossesOf(b), count)],
  };
}

const levels = { ok: "✓ ok", warn: "⚠ warning", fail: "✕ down" };
const tone = { ok: "good", warn: "warn", fail: "bad" };

// levelOf returns the level of the state of the store, or undefined if it is unknown.
function levelOf({ answer: store, problem }) {
  if (problem || store && !store.answers) return "fail";
  return store?.diagnosis?.level;
}

function StoreTile(told) {
  const store = told.answer, lost = trouble.value, level = lost?.of === "store" ? "fail" : levelOf(told);
  const role = store?.diagnosis?.findings.filter((f) => f.key === "server").map((f) => f.text);
  if (partly()) return "";
  return html`<${Tile} label="Store" value=${lost?.of === "server" ? "unknown" : levels[level] ?? (store ? "✓ answers" : "…")} bad=${level === "fail"} to=${href("overview")}
    more=${lost ? html`since <${Hour} at=${lost.since} />` : store && html`${trip(store)}${role?.length ? html`, <${Text} value=${role.join("; ")} />` : ""}`}
    title="The worst finding of its check, the round trip of a request of the server, and its role" onClick=${toStore} />`;
}

const trip = ({ answers, round_trip_ms: ms }) => answers ? `${ms < 0.01 ? "< 0.01" : ms.toFixed(2)} ms` : "does not answer";

// Store shows what the server found when it last checked its store.
function Store({ answer: store, problem }) {
  const found = store?.diagnosis?.findings ?? [], well = found.filter((f) => f.level === "ok");
  return html`<section class="card" id="store" aria-label="Store"><h2>Store</h2>
    ${partly() && html`<p>Its state is shown to those who may read all names.</p>`}
    ${problem && html`<p class="bad">✕ <${Text} value=${problem.detail} />.</p>`}
    ${store && html`<p><b><${Text} value=${store.store} /></b>, ${store.history ? "with" : "without"} history. ${store.answers
      ? html`A round trip takes <b>${trip(store)}</b>.`
      : html`<b class="bad">✕ It does not answer: <${Text} value=${store.reason} />.</b>`}
      ${store.diagnosis && html` Checked ${duration(store.checked_ago_ms)} ago${store.answers ? "" : ", before it was down"}.`}
      ${store.undiagnosed && html` ${store.diagnosis ? "No newer check" : "Not checked"}: <${Text} value=${store.undiagnosed} />.`}</p>`}
    <${Findings} all=${found.filter((f) => f.level !== "ok")} />
    ${well.length > 0 && html`<details><summary>${number(well.length, "check")} <b class=${store.answers ? "good" : ""}>✓ ok</b></summary><${Findings} all=${well} /></details>`}
  </section>`;
}

const Findings = ({ all }) => all.length > 0 && html`<ul class="events">${all.map((f) => html`<li><b class=${tone[f.level]}>${levels[f.level] ?? f.level}</b> <b>${
  f.key.replaceAll("_", " ")}</b> ${f.server && html`<span class="muted"><${Text} value=${f.server} /></span> `}<${Text} value=${f.text} /></li>`)}</ul>`;
