// How it stands: what is held, who waits, what was lost, whether the store is well, and the
// last 15 minutes.
import { html, useEffect, useMemo } from "../lib.js";
import { href } from "../route.js";
import { count, duration, number, plain, rate, who } from "../format.js";
import { history, locks, version, watch } from "../fleet.js";
import { Name, Text, When, Who, useTick } from "../parts.js";
import { forAll, partly, useAnswer } from "../answer.js";
import { Chart } from "../charts.js";
import { beat, pulse, start } from "../pulse.js";
import { census, countBack, every, granted, lossesOf, percentile, sum } from "../series.js";
import { losses } from "../kinds.js";

const minute = 60_000 / every, recently = 5 * minute; // buckets

export function Overview() {
  start();
  useTick(1000);
  version.value; // the locks have changed
  const now = census(locks);
  const queues = now.queues.slice(0, 128); // who waits for longest, is known of what is watched
  useEffect(() => watch(queues), [queues.join("\n")]);
  const store = useAnswer(forAll("v1/store"), {}, 15_000);
  const charts = useMemo(() => html`<${Charts} />`, []); // draws itself
  return html`
    <h1>Overview</h1>
    ${partly() && html`<p class="mark">⚠ You may not read all names: this counts those that you may, from when this page was opened.</p>`}
    ${pulse.problem && html`<p class="mark">⚠ The server does not tell the past, so the charts begin when this page was opened: <${Text} value=${pulse.problem.detail} />.</p>`}
    <ul class="tiles">${tiles(now)}<${StoreTile} ...${store} /></ul>
    <${Lost} />
    ${charts}
    <${Store} ...${store} />`;
}

// Tile is one number, with its unit, what it counts (title), and where to see more of it.
function Tile({ label, value, more, title, to, bad, onClick }) {
  return html`<li class=${bad ? "tile loss" : "tile"}><a href=${to} title=${title} onClick=${onClick}>
    <span>${label}</span> <b>${value}</b> <small>${more}</small></a></li>`;
}

const bound = (ms, bounds) => (ms === null ? "–" : ms === Infinity ? "> " + duration(bounds.at(-1)) : ms ? "≤ " + duration(ms) : "0 ms").replaceAll(" ", "\u00a0");
const off = "known with history only";
const state = (s) => href("locks", { state: s });

function tiles(all) {
  const { buckets, bounds } = pulse.series;
  const full = buckets.slice(0, -1);
  const flow = full.slice(-minute), waits = sum(full.slice(-recently), bounds).waits, lost = sum(buckets, bounds);
  const told = history.value !== false;
  const now = performance.now();
  const n = lossesOf(lost);
  return html`
    <${Tile} label="Held" value=${number(all.names, "lock")} more=${number(all.held, "lease")} to=${state("held")}
      title="Locks that somebody has, and how many have them: shared locks and semaphores have several holders" />
    <${Tile} label="Waiting" value=${number(all.waiting, "waiter")} more=${"for " + number(all.queues.length, "lock")} to=${state("contended")}
      title="Places in the queues of all locks" />
    <${Tile} label="Acquisitions" value=${told && flow.length ? rate(flow.reduce((s, b) => s + granted(b), 0) / (flow.length * every / 1000)) : "–"}
      more=${told ? "in the last minute" : off} to=${href("events", { kind: "acquired" })} title="Leases granted in a second, on average, with and without waiting" />
    <${Tile} label="Wait" value=${[0.5, 0.95].map((p) => html`<span><small>p${100 * p}</small> ${told ? bound(percentile(waits, bounds, p), bounds) : "–"}</span>`)}
      more=${told ? "in 5 minutes" : off} to=${state("contended")} title="Half of all acquisitions, and 95 of 100, have waited no longer than that. Who waits in vain is not counted" />
    <${Tile} label="Losses" value=${told ? (n ? "✕ " : "") + (lost.missed ? "at least " : "") + number(n, "loss", "losses") : "–"} bad=${n} to=${href("events", { kind: "losses" })}
      more=${n ? losses.filter((k) => lost[k]).map((k) => `${count(lost[k])} ${k}`).join(", ") : told ? "in 15 minutes" : off}
      title="Leases in the last 15 minutes that ended before their holders gave them back" />
    <${Tile} label="Oldest waiter" value=${all.waiter ? duration(now - all.waiter.since) : all.waiting ? "…" : "nobody"} more=${all.waiter ? html`<${Text} value=${all.waiter.name} />` : "waits"}
      to=${all.waiter ? href("lock", { name: all.waiter.name }) : state("contended")} title=${all.waiter ? "Who waits for longest: " + plain(who(all.waiter)) : "Who waits for longest"} />
    <${Tile} label="Longest hold" value=${all.holder ? duration(now - all.holder.since) : "nothing"} more=${all.holder ? html`<${Text} value=${all.holder.name} />` : "is held"}
      to=${all.holder ? href("lock", { name: all.holder.name }) : state("held")} title=${all.holder ? "Who holds for longest: " + plain(who(all.holder)) : "Who holds for longest"} />`;
}

// Lost names the latest losses.
function Lost() {
  if (!pulse.losses.length) return "";
  return html`<section class="card" aria-label="Losses"><h2>Latest losses</h2><ol class="events">${pulse.losses.slice(0, 5).map((e) => html`
    <li class="loss" key=${e.id}><${When} at=${e.at} /> <b>✕ ${e.event}</b> <${Name} name=${e.name} /> <span>${e.holder && html`<${Who} holder=${e.holder} />`}${
      e.author && html`, by <${Text} value=${e.author} />`}${e.reason && html`: <${Text} value=${e.reason} />`}</span></li>`)}</ol></section>`;
}

function Charts() {
  beat.value; // each second
  const { buckets, bounds } = pulse.series;
  const lines = series(buckets, bounds, census(locks));
  const told = history.value !== false;
  return html`<section class="charts" aria-label="The last 15 minutes">
    ${told && html`<${Chart} title="Acquisitions per second" lines=${lines.flow} xs=${lines.xs} />`}
    <${Chart} title="Held and waiting (leases, waiters)" lines=${lines.held} xs=${lines.xs} />
    ${told && html`
    <${Chart} title="Wait for a lock" lines=${lines.waits} xs=${lines.xs} />
    <${Chart} title="Losses in 5 s (leases)" lines=${lines.losses} xs=${lines.xs} bars />`}</section>`;
}

// series makes the lines of all charts. A bucket in which something may have been missed, and
// the present one where it is a rate, is not known.
function series(buckets, bounds, { held, waiting }) {
  const end = performance.now();
  const at = countBack(buckets, { held, waiting });
  const over = (b, i) => i < buckets.length - 1 && !b.gap;
  const line = (label, tone, least, say, f, axis) => ({ label, tone, least, say, axis, values: buckets.map((b, i) => f(b, i) ?? null) });
  const wait = (p) => (b, i) => {
    const ms = over(b, i) ? percentile(b.waits, bounds, p) : null;
    return ms === Infinity ? bounds.at(-1) : ms;
  };
  return {
    xs: buckets.map((b) => Math.min(0, (b.start + every - end) / 1000)),
    flow: [line("granted", "accent", 1, rate, (b, i) => over(b, i) ? granted(b) * 1000 / every : null)],
    held: [line("held", "accent", 4, (n) => number(n, "lease"), (b, i) => at[i]?.held, count), line("waiting", "warn", 4, (n) => number(n, "waiter"), (b, i) => at[i]?.waiting)],
    waits: [line("p50", "accent", 10, duration, wait(0.5)), line("p95", "warn", 10, duration, wait(0.95))],
    losses: [line("✕ lost", "bad", 4, (n) => number(n, "lease"), (b) => b.gap ? null : lossesOf(b), count)],
  };
}

const levels = { ok: "✓ ok", warn: "⚠ warning", fail: "✕ fails" };
const tone = { ok: "good", warn: "warn", fail: "bad" };

// levelOf is how the store is, as far as is known.
function levelOf({ answer: store, problem }) {
  if (problem || store && !store.answers) return "fail";
  return store?.diagnosis?.level;
}

function StoreTile(told) {
  const store = told.answer, level = levelOf(told);
  const role = store?.diagnosis?.findings.filter((f) => f.key === "server").map((f) => f.text);
  if (partly()) return "";
  return html`<${Tile} label="Store" value=${levels[level] ?? (store ? "✓ answers" : "…")} bad=${level === "fail"} to=${href("overview")}
    more=${store && html`${trip(store)}${role?.length ? html`, <${Text} value=${role.join("; ")} />` : ""}`}
    title="The worst finding of its check, the round trip of a request of the server, and its role"
    onClick=${(e) => { e.preventDefault(); document.getElementById("store").scrollIntoView(); }} />`;
}

const trip = ({ answers, round_trip_ms: ms }) => answers ? `${ms < 0.01 ? "< 0.01" : ms.toFixed(2)} ms` : "does not answer";

// Store is what the server finds when it checks its store, once a minute at most.
function Store({ answer: store, problem }) {
  const found = store?.diagnosis?.findings ?? [], well = found.filter((f) => f.level === "ok");
  return html`<section class="card" id="store" aria-label="Store"><h2>Store</h2>
    ${partly() && html`<p>How it does is shown to those who may read all names.</p>`}
    ${problem && html`<p class="bad">✕ <${Text} value=${problem.detail} />.</p>`}
    ${store && html`<p><b><${Text} value=${store.store} /></b>, ${store.history ? "with" : "without"} history. ${store.answers
      ? html`A round trip takes <b title="One request of the server to its store, there and back">${trip(store)}</b>.`
      : html`<b class="bad">✕ It does not answer: <${Text} value=${store.reason} />.</b>`}
      ${store.diagnosis && html` Checked ${duration(store.checked_ago_ms)} ago.`}
      ${store.undiagnosed && html` ${store.diagnosis ? "No newer check" : "Not checked"}: <${Text} value=${store.undiagnosed} />.`}</p>`}
    <${Findings} all=${found.filter((f) => f.level !== "ok")} />
    ${well.length > 0 && html`<details><summary>${number(well.length, "check")} <b class="good">✓ ok</b></summary><${Findings} all=${well} /></details>`}
  </section>`;
}

const Findings = ({ all }) => html`<ul class="events">${all.map((f) => html`<li><b class=${tone[f.level]}>${levels[f.level] ?? f.level}</b> <b>${
  f.key.replaceAll("_", " ")}</b> ${f.server && html`<span class="muted"><${Text} value=${f.server} /></span> `}<${Text} value=${f.text} /></li>`)}</ul>`;
