import test from "node:test";
import assert from "node:assert/strict";
import {
  add, advance, after, census, countBack, every, fresh, fromStats, granted, lossesOf, matches, percentile, placeOf, span, sum,
} from "../web/series.js";

const bounds = [0, 10, 100];
const bucket = (b) => ({ ago_ms: 0, gap: false, acquired: 0, handed_over: 0, released: 0, expired: 0, lost: 0, broken: 0, queued: 0, gave_up: 0, completed: 0, waits: [], ...b });

test("a wait belongs to the first bound that is not less", () => {
  assert.deepEqual([0, 0.5, 10, 11, 100, 101].map((ms) => placeOf(ms, bounds)), [0, 1, 1, 2, 2, 3]);
});

test("percentiles are bounds of what was waited", () => {
  assert.equal(percentile([0, 0, 0, 0], bounds, 0.5), null);
  assert.equal(percentile([1, 0, 0, 0], bounds, 0.95), 0);
  assert.equal(percentile([50, 45, 5, 0], bounds, 0.5), 0);
  assert.equal(percentile([50, 45, 5, 0], bounds, 0.95), 10);
  assert.equal(percentile([49, 45, 6, 0], bounds, 0.5), 10);
  assert.equal(percentile([49, 45, 6, 0], bounds, 0.95), 100);
  assert.equal(percentile([0, 0, 0, 1], bounds, 0.5), Infinity);
});

test("live events go on from what the server has counted, and none counts twice", () => {
  const stats = { bounds_ms: bounds, last_id: "b", buckets: [bucket({ ago_ms: 7000, acquired: 1, waits: [1] }), bucket({ ago_ms: 2000, handed_over: 1, waits: [0, 1] })] };
  const s = fromStats(stats, 10_000, fresh(9000, bounds));
  const stream = ["a", "b", "c", "d"].map((id, i) => ({ id, event: "acquired", name: "n", at: 9000 + i }));
  for (const e of after(stream, "b")) add(s, e, 10_000);
  assert.deepEqual(s.buckets.map((b) => [b.start, granted(b), b.waits]), [[3000, 1, [1, 0, 0, 0]], [8000, 3, [2, 1, 0, 0]]]);
  assert.deepEqual(after(stream, "older than the stream").map((e) => e.id), ["a", "b", "c", "d"]);
  assert.equal(after(stream, "d").length, 0);
  assert.equal(after([{ event: "gap" }, ...stream], undefined).length, 5, "the server has counted nothing");
});

test("an event is counted when it happened, and time goes on without events", () => {
  const s = fresh(1000, bounds);
  add(s, { event: "acquired", at: 1000 }, 1000);
  add(s, { event: "handed_over", waited_ms: 11, at: 12_000 }, 17_000);
  add(s, { event: "lost", at: 2000 }, 17_000);
  add(s, { event: "gap", at: 8000 }, 17_000);
  add(s, { event: "constructor", at: 8000 }, 17_000);
  add(s, { event: "waits", at: 8000 }, 17_000);
  assert.deepEqual(s.buckets.map((b) => [b.start, granted(b), lossesOf(b), b.gap]),
    [[1000, 1, 1, false], [6000, 0, 0, true], [11_000, 1, 0, false], [16_000, 0, 0, false]]);
  assert.deepEqual(s.buckets[2].waits, [0, 0, 1, 0]);
});

test("what is older than 15 minutes is dropped, after a long sleep too", () => {
  const s = fresh(0, bounds);
  for (let now = 0; now <= 2 * span; now += 1000) advance(s, now);
  assert.equal(s.buckets.length, span / every + 2);
  assert.ok(s.buckets.every((b, i, all) => i === 0 || b.start - all[i - 1].start === every));
  advance(s, 1e9);
  assert.ok(s.buckets.length <= span / every + 2 && s.buckets.at(-1).start + every > 1e9, "asleep for days");
});

test("held and waiting of the past are counted back from now", () => {
  const buckets = [
    bucket({ acquired: 3, released: 1, queued: 2 }), // 2 leases, 2 places at its end
    bucket({ handed_over: 1, expired: 1, gave_up: 1 }), // 2, 0
    bucket({ acquired: 2, lost: 1, broken: 1, completed: 1 }), // 1, 0
  ];
  assert.deepEqual(countBack(buckets, { held: 1, waiting: 0 }), [{ held: 2, waiting: 2 }, { held: 2, waiting: 0 }, { held: 1, waiting: 0 }]);
});

test("nothing is known beyond a gap, but what was seen", () => {
  const buckets = [bucket({ seen: { held: 7, waiting: 1 } }), bucket({}), bucket({ gap: true }), bucket({ acquired: 1 })];
  assert.deepEqual(countBack(buckets, { held: 3, waiting: 0 }), [{ held: 7, waiting: 1 }, null, { held: 2, waiting: 0 }, { held: 3, waiting: 0 }]);
  assert.deepEqual(countBack([bucket({ released: 1 }), bucket({ acquired: 5 })], { held: 3, waiting: 0 })[0], { held: 0, waiting: 0 }, "never less than none");
});

test("what the page has seen stays when the server's counts come again", () => {
  const old = [{ start: 2000, seen: { held: 1, waiting: 0 } }, { start: 9000, seen: { held: 2, waiting: 0 } }];
  const stats = { bounds_ms: bounds, buckets: [bucket({ ago_ms: 9900, waits: [] }), bucket({ ago_ms: 4900 }), bucket({ ago_ms: 1100 })] };
  assert.deepEqual(fromStats(stats, 10_000, { bounds, buckets: old }).buckets.map((b) => b.seen?.held), [1, undefined, 2]);
});

test("what was before the server's start is kept, and nothing of it twice", () => {
  const old = fresh(0, [5, 500]);
  for (const [at, waited_ms] of [[1000, 3], [1000, 70], [8000, 501], [13_000, 0]]) add(old, { event: "handed_over", waited_ms, at }, 14_000);
  const stats = { bounds_ms: bounds, buckets: [bucket({ ago_ms: 3000, gap: true, acquired: 1, waits: [1] })] };
  const s = fromStats(stats, 15_000, old);
  assert.deepEqual(s.buckets.map((b) => [b.start, granted(b), b.waits]), [[0, 2, [0, 1, 0, 1]], [5000, 1, [0, 0, 0, 1]], [12_000, 1, [1, 0, 0, 0]]]);
  assert.equal(countBack(s.buckets, { held: 1, waiting: 0 })[1], null);
});

test("buckets add up", () => {
  const s = sum([bucket({ lost: 1, waits: [1, 0, 0, 0] }), bucket({ lost: 2, broken: 1, gap: true, waits: [0, 0, 0, 2] })], bounds);
  assert.deepEqual([s.lost, lossesOf(s), s.waits, s.gap], [3, 4, [1, 0, 0, 2], true]);
});

test("events are filtered", () => {
  const e = { event: "lost", name: "orders/42", holder: { user: "Ann", host: "web-3", pid: 812, program: "sh", label: "night" } };
  const match = (f, event = e) => matches(event, f);
  for (const f of [{}, { prefix: "orders/" }, { kind: "lost" }, { kind: "losses" }, { holder: "ann" }, { holder: "812" }, { holder: "NIGHT" }]) assert.ok(match(f), JSON.stringify(f));
  for (const f of [{ prefix: "rders" }, { kind: "broken" }, { holder: "bob" }, { prefix: "orders/", kind: "acquired" }]) assert.ok(!match(f), JSON.stringify(f));
  assert.ok(!match({ kind: "losses" }, { ...e, event: "released" }));
  assert.ok(match({ holder: "eve" }, { ...e, author: "eve" }), "who broke it");
  assert.ok(match({ prefix: "x", kind: "lost" }, { event: "gap" }), "a gap may have hidden anything");
});

test("the census counts leases that are live, and finds the oldest", () => {
  const locks = new Map([
    ["a", { name: "a", held: true, queueLength: 2, holders: [{ since: 50 }, { since: 40 }], queue: [{ since: 90 }, { since: 95 }] }],
    ["b", { name: "b", held: false, queueLength: 0, holders: [{ since: 1, released: true }] }],
    ["c", { name: "c", held: true, queueLength: 3, holders: [{ since: undefined, foreign: true }] }],
  ]);
  const c = census(locks);
  assert.deepEqual([c.names, c.held, c.waiting, c.queues, c.holder, c.waiter],
    [2, 3, 5, ["c", "a"], { since: 40, name: "a" }, { since: 90, name: "a" }]);
  assert.equal(census(new Map()).waiter, null);
});
