// What happened to a name, as leases: who had it, from when to when, and how that ended.
// Nothing here knows a page, or a clock: an event has `at`, its instant.

import { begins, ends, losses } from "../../kinds.js";

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
    if (begins.includes(e.event)) beginLease(l, e);
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

function beginLease(l, e) {
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

// wayOf is how a lease stands: held, or how it has ended.
export const wayOf = (l) => l.end ?? "held";

const barKind = (l) => (losses.includes(l.end) ? "bad" : l.end === "unknown" ? "unknown" : l.end ? "ended" : "held");
const worst = ["ended", "unknown", "held", "bad"]; // what is shown of several, the last that there is

const least = 0.4; // percent, that can be seen

// bitsOf returns what a lane shows between two instants, in percent of that time: {a, b, kind,
// leases, waited}. Leases too short to be told apart are one bit, whose kind is the worst of
// them. waited is where the wait for a lease began, if there is room for it.
export function bitsOf(leases, from, to) {
  const bits = [];
  const x = (t) => Math.min(100, Math.max(0, (100 * (t - from)) / (to - from)));
  for (const l of leases) {
    if (l.to < from || l.from > to) continue;
    const a = x(l.from ?? from), b = Math.min(100, Math.max(x(l.to), a + least));
    const kind = barKind(l), last = bits.at(-1);
    if (last && a - last.b < least && (b - a < 3 * least || last.b - last.a < 3 * least)) {
      last.b = Math.max(last.b, b);
      last.leases.push(l);
      if (worst.indexOf(kind) > worst.indexOf(last.kind)) last.kind = kind;
      continue;
    }
    const waited = l.waited > 0 ? x(l.from - l.waited) : a;
    bits.push({ a: Math.min(a, 100 - least), b, kind, leases: [l], waited: a - waited > least ? waited : undefined });
  }
  return bits;
}

const paces = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400].map((s) => s * 1000); // ms

// ticksOf returns the instants between two others at which an axis has a mark, six at most, at
// round times of the clock: {at, seconds}. offset is the time of the clock at the instant 0.
export function ticksOf(from, to, offset = Date.now() - performance.now()) {
  const pace = paces.find((p) => (to - from) / p <= 6) ?? to - from;
  const first = Math.ceil((from + offset) / pace) * pace - offset, ticks = [];
  for (let at = first; at <= to; at += pace) ticks.push({ at, seconds: pace < 60_000 });
  return ticks;
}
