// The series that the overview shows, kept from when somebody first looks at it: as the
// server has counted, and from there on by the events that this page hears.
import { effect, signal } from "./signal.js";
import { forAll } from "./answer.js";
import { get } from "./api.js";
import { keepsHistory, locks, onEvent, ready, recent, session, trouble } from "./fleet.js";
import { add, advance, after, census, every, fresh, fromStats, span } from "./series.js";
import { kept } from "./kept.js";
import { losses } from "./kinds.js";

const ownBounds = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6];
const mostLosses = 50;

// spans are the times that the charts can show: ms, and how they are asked for and called.
export const spans = {
  "15 m": { ms: 900_000, title: "15 minutes", minutes: [-15, -10, -5] },
  "1 h": { ms: 3_600_000, title: "hour", minutes: [-60, -40, -20] },
  "24 h": { ms: 86_400_000, title: "24 hours", minutes: [-1440, -960, -480] },
};

// pulse is {series, long, losses, contended, problem}: long is the series of a longer time if that
// is shown, losses are the events of the latest, newest first, and problem is why the server has
// not told the past, if it was asked. beat is bumped when something of it has changed, once a
// second at least.
export const pulse = { series: null, long: null, losses: [], contended: [], problem: null, range: kept("range", Object.keys(spans)) };
export const beat = signal(0);

let started = false;

// start begins to count, once for all.
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

// askSoon asks the server again, at once for all that was missed.
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
  // What the server has counted last may still be under way to us.
  if (stats.last_id && !recent.some((e) => e.id === stats.last_id)) await new Promise((done) => setTimeout(done, 500));
  pulse.series = fromStats(stats, now, pulse.series);
  for (const e of after(recent, stats.last_id)) add(pulse.series, e, performance.now());
  for (const l of stats.losses ?? []) addLoss({ ...l, at: now - l.ago_ms });
  beat.value++;
}

// far keeps the series of a longer time, as long as that is shown, and what is contended.
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

// sample notes what is held and waiting now, in the present bucket. Where nothing tells of
// events, or did so in the meantime, nothing else is known.
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

// Somebody else may see other names.
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
