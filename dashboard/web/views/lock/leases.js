// What happened to a name, as leases: who had it, from when to when, and how that ended.
// Nothing here knows a page, or a clock: an event has `at`, its instant.

import { begins, ends } from "../../kinds.js";

// merge adds events to those that are known, each once. Where the store has forgotten what
// lies between them there is a gap: a history is full with 64 events.
export function merge(known, more, full = 64) {
  const ids = new Set(known.map(e => e.id));
  const fresh = more.filter(e => !ids.has(e.id));
  if (known.length && fresh.length && fresh.length === more.length && more.length >= full) {
    fresh.unshift({ event: "gap", at: fresh[0].at });
  }
  return [...known, ...fresh].sort((a, b) => a.at - b.at).slice(-1000);
}

// leasesOf returns the leases that events and present holders tell of, by increasing token:
// {token, holder, mode, permits, from, to, held, waited, end, author, reason}. `from` is
// undefined where nobody knows it, `rough` says that from and to are at the latest. `end` is
// undefined as long as somebody has it, and "unknown" where its end was not seen.
export function leasesOf(events, holders, now) {
  const leases = new Map();
  for (const e of events) {
    if (!e.fencing_token_str) continue; // of a place, or a gap
    const token = e.fencing_token_str;
    if (!leases.has(token)) leases.set(token, { token, holder: e.holder, mode: e.mode, permits: e.permits });
    const l = leases.get(token);
    if (begins.includes(e.event)) begin(l, e);
    else if (ends.includes(e.event)) end(l, e);
  }
  for (const h of holders) {
    if (h.foreign) continue; // it has no token
    const l = leases.get(h.fencing_token_str) ?? { token: h.fencing_token_str, permits: h.permits };
    leases.set(l.token, Object.assign(l, { holder: h, from: l.from ?? h.since, live: !h.released }));
  }
  const all = [...leases.values()].sort((a, b) => compare(a.token, b.token));
  all.forEach((l, i) => settle(l, all[i + 1], now));
  return all;
}

function begin(l, e) {
  l.from = e.at;
  l.waited = e.event === "acquired" ? 0 : e.waited_ms;
}

// end takes the end of a lease, and of two the first: a name that a minimum hold keeps closed
// is broken after its release.
function end(l, e) {
  if (l.end && l.end !== "broken") {
    if (e.event === "broken") l.opened = e;
    return;
  }
  if (l.end === "broken") l.opened = { author: l.author, reason: l.reason };
  Object.assign(l, { end: e.event, ended: e.at, held: e.held_ms, author: e.author, reason: e.reason });
}

// settle fills in what the events of a lease do not say.
function settle(l, next, now) {
  if (!l.end) {
    if (l.live) {
      l.to = now;
    } else { // released before the history began to be read, or by somebody who writes none
      l.end = "unknown";
      l.to = l.mode === "exclusive" && next?.from > l.from ? next.from : l.from;
    }
  } else if (l.end === "expired" && l.from !== undefined && l.held !== undefined) {
    l.to = Math.min(l.ended, l.from + l.held); // it is written when somebody notices
    l.rough = false;
  } else {
    l.to = l.ended;
    l.rough = l.end === "expired";
    if (l.from === undefined && l.held !== undefined) l.from = l.to - l.held;
  }
  if (l.from !== undefined && l.end !== "unknown") l.held ??= l.to - l.from;
}

// compare orders two tokens, which are whole numbers in texts.
export function compare(a, b) { return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0); }

// stepsOf returns by how much each token is greater than the one before it; the first has none.
export function stepsOf(leases) {
  return leases.map((l, i) => i ? BigInt(l.token) - BigInt(leases[i - 1].token) : undefined);
}

// heightsOf places tokens between 0 and 1.
export function heightsOf(leases) {
  const tokens = leases.map(l => BigInt(l.token));
  const [low, high] = [tokens[0], tokens.at(-1)];
  return tokens.map(t => high > low ? Number((t - low) * 1000n / (high - low)) / 1000 : 0.5);
}

// lanesOf groups leases by who had them, whoever had one last first.
export function lanesOf(leases) {
  const lanes = new Map();
  for (const l of [...leases].reverse()) {
    const { host, pid, user, program, label } = l.holder;
    const key = JSON.stringify([host, pid, user, program, label]);
    if (!lanes.has(key)) lanes.set(key, { key, holder: l.holder, leases: [] });
    lanes.get(key).leases.unshift(l);
  }
  return [...lanes.values()];
}

const s = 1000, m = 60 * s, h = 60 * m;
const paces = [1, 2, 5, 10, 20, 50, 100, 200, 500, s, 2 * s, 5 * s, 10 * s, 30 * s, m, 2 * m, 5 * m, 10 * m, 30 * m, h, 2 * h, 4 * h, 6 * h, 12 * h, 24 * h];

// ticksOf returns ages at which an axis has a mark, from 0 up, six at most.
export function ticksOf(span) {
  const pace = paces.find(p => span / p < 6) ?? span;
  return Array.from({ length: Math.floor(span / pace) + 1 }, (_, i) => i * pace);
}
