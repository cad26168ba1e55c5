// Counts of recent events in buckets: those of the server (GET v1/stats), and those of live events
// after them. A live series has 15 minutes in buckets of 5 s. Nothing here uses the page.
import { begins, ends, losses } from "./kinds.js";

export const span = 15 * 60_000;
export const every = 5_000;

const leaves = ["handed_over", "gave_up"];
const counted = [...begins, ...ends, "queued", "gave_up"];

const empty = (start, bounds) => Object.fromEntries([
  ["start", start], ["every", every], ["gap", false], ["missed", false], ["waits", Array(bounds.length + 1).fill(0)], ...counted.map((k) => [k, 0]),
]);

const total = (bucket, some) => some.reduce((n, kind) => n + bucket[kind], 0);
export const granted = (bucket) => total(bucket, begins);
export const lossesOf = (bucket) => total(bucket, losses);

// fresh returns a series that begins now. It has no buckets for the unknown time before.
export function fresh(now, bounds) {
  return { bounds, buckets: [empty(now, bounds)] };
}

// fromStats returns the series of a reply that was true at the instant now. From the old series
// it keeps the numbers that the page saw itself, and the buckets from before the server began to
// count. A gap marks where the server began to count.
export function fromStats(stats, now, old) {
  const bounds = stats.bounds_ms;
  const seen = (start) => old.buckets.find((b) => Math.abs(b.start - start) <= every / 2)?.seen;
  const buckets = stats.buckets.map(({ ago_ms: ago, ...b }) => ({ ...empty(now - ago, bounds), every: stats.every_ms, ...b, waits: padded(b.waits, bounds), seen: seen(now - ago) }));
  const before = old.buckets.filter((b) => b.start + every <= buckets[0].start).map((b) => ({ ...b, waits: rebound(b.waits, old.bounds, bounds) }));
  return { bounds, buckets: [...before, ...buckets] };
}

const padded = (waits, bounds) => [...bounds, 0].map((_, i) => waits[i] ?? 0);

// rebound counts the same waits in buckets with other bounds.
function rebound(waits, from, to) {
  const all = padded([], to);
  waits.forEach((n, i) => { all[placeOf(from[i] ?? Infinity, to)] += n; });
  return all;
}

// after returns the events that a reply does not count. id is the last event that it counts; the
// stream has the events in the order in which the server counts them. If id is not among the
// events, the stream began after it, and all events are new.
export function after(events, id) {
  return events.slice(events.findLastIndex((e) => id && e.id === id) + 1);
}

// advance adds buckets up to now, and removes those older than span.
export function advance({ buckets, bounds }, now) {
  const last = buckets.at(-1).start;
  for (let at = Math.max(last, now - span - every); at + every <= now;) buckets.push(empty(at += every, bounds));
  while (buckets.length > 1 && buckets[0].start < now - span - every) buckets.shift();
}

// add counts an event in the bucket of its instant.
export function add(series, event, now) {
  advance(series, now);
  const { buckets, bounds } = series;
  const at = event.at ?? now;
  const bucket = buckets.findLast((b) => b.start <= at) ?? buckets[0];
  if (event.event === "gap") bucket.gap = true;
  if (!(event.event in bucket) || !counted.includes(event.event)) return;
  bucket[event.event]++;
  if (begins.includes(event.event)) bucket.waits[placeOf(event.waited_ms ?? 0, bounds)]++;
}

// placeOf returns the index of the count for a wait: the first i with ms <= bounds[i], or
// bounds.length for a wait beyond all bounds.
export function placeOf(ms, bounds) {
  const i = bounds.findIndex((b) => ms <= b);
  return i < 0 ? bounds.length : i;
}

// countBack returns the held leases and the waiters at the end of each bucket. From those of now
// it counts back: it subtracts what began in a bucket and adds what ended. Before a gap the
// numbers are unknown (null), except those that the page saw at the time (bucket.seen).
export function countBack(buckets, now) {
  const all = Array(buckets.length).fill(null);
  let at = now;
  for (let i = buckets.length - 1; i >= 0; i--) {
    const b = buckets[i];
    at = i < buckets.length - 1 && b.seen || at;
    all[i] = at;
    at = at && !b.gap ? {
      held: Math.max(0, at.held - total(b, begins) + total(b, ends)),
      waiting: Math.max(0, at.waiting - b.queued + total(b, leaves)),
    } : null;
  }
  return all;
}

// sum adds up buckets.
export function sum(buckets, bounds) {
  const s = empty(0, bounds);
  for (const b of buckets) {
    for (const kind of counted) s[kind] += b[kind];
    b.waits.forEach((n, i) => { s.waits[i] += n; });
    s.gap ||= b.gap;
    s.missed ||= b.missed;
  }
  return s;
}

// percentile returns the first bound that the share p of all waits does not exceed: null without
// waits, Infinity if there is no such bound.
export function percentile(waits, bounds, p) {
  const all = waits.reduce((a, b) => a + b, 0);
  let n = 0;
  return all ? bounds[waits.findIndex((w) => (n += w) >= p * all)] ?? Infinity : null;
}

// matches reports whether an event passes a filter. Marks, such as a gap, pass every filter.
export function matches(event, { prefix = "", kind = "", holder = "" }) {
  if (!counted.includes(event.event)) return true;
  const who = event.holder ?? {};
  const said = [who.caller, who.user, who.host, who.program, who.label, who.pid || "", event.author].join("\n").toLowerCase();
  return (event.name ?? "").startsWith(prefix) && said.includes(holder.toLowerCase()) &&
    (!kind || event.event === kind || kind === "losses" && losses.includes(event.event));
}

// census counts, at an instant, the held names, the held leases and the waiters. It also returns
// the names with a queue, the longest queue first; how long each known waiter has waited; and the
// holder and the waiter with the longest time.
export function census(locks, at) {
  const c = { names: 0, held: 0, waiting: 0, queues: [], waits: [], holder: null, waiter: null };
  const older = (a, b, name) => b.since !== undefined && !(a?.since <= b.since) ? { ...b, name } : a;
  for (const lock of locks.values()) {
    c.names += lock.held;
    c.waiting += lock.queueLength;
    if (lock.queueLength) c.queues.push(lock);
    for (const h of lock.holders) {
      if (h.released) continue;
      c.held++;
      c.holder = older(c.holder, h, lock.name);
    }
    for (const p of lock.queue ?? []) {
      c.waits.push(at - p.since);
      c.waiter = older(c.waiter, p, lock.name);
    }
  }
  c.queues = c.queues.sort((a, b) => b.queueLength - a.queueLength).map((lock) => lock.name);
  return c;
}
