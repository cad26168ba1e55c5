// The series that the overview shows: the counts of the server, and those of the events that this
// page receives after them. The page keeps it from the first call of start on.
import { effect, signal } from "./signal.js";
import { forAll } from "./answer.js";
import { get } from "./api.js";
import { keepsHistory, locks, onEvent, ready, recent, session, trouble } from "./fleet.js";
import { add, advance, after, census, every, fresh, fromStats, span } from "./series.js";
import { kept } from "./kept.js";
import { losses } from "./kinds.js";

const ownBounds = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6];
const mostLosses = 50;

// spans are the times that the charts can show: ms, title, and the marks of the x axis in minutes.
export const spans = {
  "15 m": { ms: 900_000, title: "15 minutes", minutes: [-15, -10, -5] },
  "1 h": { ms: 3_600_000, title: "hour", minutes: [-60, -40, -20] },
  "24 h": { ms: 86_400_000, title: "24 hours", minutes: [-1440, -960, -480] },
};

// pulse.series is the live series; pulse.long is the series of a longer span while one is shown.
// losses are the events of the latest losses, the newest first. contended are the server's most
// contended locks. problem is why the server did not return its counts. beat changes when pulse
// does, at least once a second.
export const pulse = { series: null, long: null, losses: [], contended: [], problem: null, range: kept("range", Object.keys(spans)) };
export const beat = signal(0);

let started = false;

// start begins to count. Later calls do nothing.
export function start() {
  if (started) return;
  started = true;
  const now = performance.now();
  pulse.series = fresh(now, ownBounds);
  onEvent((event) => {
    add(pulse.series, event, performance.now());
    addLoss(event);
    if (event.event === "gap") askSoon();
  });
  setInterval(sample, 1000);
  load();
  far(pulse.range.value);
}

function addLoss(event) {
  if (!losses.includes(event.event) || pulse.losses.some((l) => l.id === event.id)) return;
  pulse.losses = [event, ...pulse.losses].sort((a, b) => b.at - a.at).slice(0, mostLosses);
  beat.value++;
}

let asked = 0, wasAway = false, sampled = 0;

// askSoon requests the counts again, once for all calls within a second of each other.
function askSoon() {
  clearTimeout(asked);
  asked = setTimeout(load, 1000);
}

async function load() {
  if (!forAll("v1/stats") || session.value.history === false) return;
  const stats = await get("v1/stats").catch((problem) => { pulse.problem = problem; });
  beat.value++;
  if (!stats) return;
  pulse.problem = null;
  const now = performance.now();
  // The last event that the server has counted may not have arrived here yet.
  if (stats.last_id && !recent.some((e) => e.id === stats.last_id)) await new Promise((done) => setTimeout(done, 500));
  pulse.series = fromStats(stats, now, pulse.series);
  for (const e of after(recent, stats.last_id)) add(pulse.series, e, performance.now());
  for (const l of stats.losses ?? []) addLoss({ ...l, at: now - l.ago_ms });
  beat.value++;
}

// far requests, every minute, the contended locks and the series of a longer span, if one is shown.
let again = 0;
effect(() => {
  pulse.long = null;
  far(pulse.range.value);
});

async function far(range) {
  clearTimeout(again);
  const { ms } = spans[range];
  const stats = started && !document.hidden && forAll("v1/stats") && session.value.history !== false && await get("v1/stats", { span_ms: ms }).catch(() => {});
  if (range !== pulse.range.value) return;
  if (stats) {
    pulse.contended = stats.contended;
    if (ms > span) pulse.long = fromStats(stats, performance.now(), { bounds: stats.bounds_ms, buckets: [] });
    beat.value++;
  }
  again = setTimeout(far, 60_000, range);
}

// sample records in the present bucket how many leases are held and how many waiters there are.
// If events since the last sample may be missing, it marks the buckets since then as gaps.
function sample() {
  const now = performance.now();
  advance(pulse.series, now);
  const { buckets } = pulse.series;
  if (trouble.value || wasAway || keepsHistory.value === false) {
    for (const b of buckets) b.gap ||= b.start + every > sampled;
  }
  if (wasAway && !trouble.value) askSoon();
  wasAway = !!trouble.value;
  if (!wasAway && ready.value) {
    const { held, waiting, waiter } = census(locks, now);
    buckets.at(-1).seen = { held, waiting, longest: waiter ? now - waiter.since : 0 };
  }
  sampled = now;
  beat.value++;
}

// Another caller may see other names, so the series begins again.
let caller;
effect(() => {
  const next = session.value?.caller;
  if (next === caller) return;
  caller = next;
  if (!started) return;
  pulse.series = fresh(performance.now(), ownBounds);
  pulse.losses = [];
  if (!session.value) return;
  load();
  far(pulse.range.value);
});
