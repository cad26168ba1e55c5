// The history of a name as leases: the holder, the time, and how the lease ended. Nothing here uses
// the page. An event has its instant in `at`.

import { begins, ends, losses } from "../../kinds.js";

// merge adds events to the known ones, each once. If a full history (64 events) has no known event,
// the store may have dropped events in between: then merge adds a gap.
export function merge(known, more, full = 64) {
  const ids = new Set(known.map(e => e.id));
  const fresh = more.filter(e => !ids.has(e.id));
  if (known.length && fresh.length && fresh.length === more.length && more.length >= full) {
    fresh.unshift({ event: "gap", at: fresh[0].at });
  }
  return [...known, ...fresh].sort((a, b) => a.at - b.at).slice(-1000);
}

// leasesOf returns the leases of events and present holders, by increasing token: {token, holder,
// mode, permits, from, to, held, waited, end, author, reason}. `from` is undefined if unknown;
// `rough` means that from and to may have been earlier. `end` is undefined while the lease is
// held, and "unknown" if no event reports its end.
export function leasesOf(events, holders, now) {
  const leases = new Map();
  for (const e of events) {
    if (!e.fencing_token_str) continue; // an event of a waiter, or a gap
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

// end records the end of a lease. If a lease has two ends, one of them is a break: a minimum hold
// kept the name closed after the lease had ended, and a user opened it.
function end(l, e) {
  if (l.end && l.end !== "broken") {
    if (e.event === "broken") l.opened = e;
    return;
  }
  if (l.end === "broken") l.opened = { author: l.author, reason: l.reason };
  Object.assign(l, { end: e.event, ended: e.at, held: e.held_ms, author: e.author, reason: e.reason });
}

// settle fills in what the events of a lease do not contain.
function settle(l, next, now) {
  if (!l.end) {
    if (l.live) {
      l.to = now;
    } else { // the history lacks its end, or the client writes no history
      l.end = "unknown";
      l.to = l.mode === "exclusive" && next?.from > l.from ? next.from : l.from;
    }
  } else if (l.end === "expired" && l.from !== undefined && l.held !== undefined) {
    l.to = Math.min(l.ended, l.from + l.held); // the event is written when a client notices
    l.rough = false;
  } else {
    l.to = l.ended;
    l.rough = l.end === "expired";
    if (l.from === undefined && l.held !== undefined) l.from = l.to - l.held;
  }
  if (l.from !== undefined && l.end !== "unknown") l.held ??= l.to - l.from;
}

// compare orders two tokens, which are whole numbers as texts.
export function compare(a, b) { return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0); }

// lanesOf groups leases by holder, the holder of the latest lease first.
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

// wayOf returns "held", or how the lease ended.
export const wayOf = (l) => l.end ?? "held";

const barKind = (l) => (losses.includes(l.end) ? "bad" : l.end === "unknown" ? "unknown" : l.end ? "ended" : "held");
const worst = ["ended", "unknown", "held", "bad"]; // of several leases in one bar, the last of these kinds is shown

const least = 0.4; // percent, the least visible width

// bitsOf returns the bars of a lane between two instants: {a, b, kind, leases, waited}. a, b and
// waited are in percent of that time. Leases that are too short and too close together share a bar
// with the worst of their kinds. waited is the begin of the wait for a lease, if it is visible.
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

// ticksOf returns the marks of an axis between two instants, about six at most, at round times of
// the clock: {at, seconds}. seconds is whether to show them. offset is the clock at the instant 0.
export function ticksOf(from, to, offset = Date.now() - performance.now()) {
  const pace = paces.find((p) => (to - from) / p <= 6) ?? to - from;
  const first = Math.ceil((from + offset) / pace) * pace - offset, ticks = [];
  for (let at = first; at <= to; at += pace) ticks.push({ at, seconds: pace < 60_000 });
  return ticks;
}
