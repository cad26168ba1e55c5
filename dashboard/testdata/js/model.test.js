import test from "node:test";
import { deepEqual, equal } from "node:assert/strict";
import { Model } from "../web/model.js";

const ann = { host: "web-1", pid: 1, user: "ann", program: "job", person: false, label: "", reason: "", labels: null };
const bob = { ...ann, host: "web-2", pid: 2, user: "bob" };

const holder = (token, more) => ({ ...ann, permits: 0, fencing_token: Number(token), fencing_token_str: token,
  held_ms: 1000, expires_in_ms: 9000, released: false, foreign: false, ...more });
const raw = (name, more) => ({ name, held: true, mode: "exclusive", limit: 0, holders: [holder("5")], queue_length: 0,
  last_token: 5, last_token_str: "5", ...more });
const free = (name, more) => raw(name, { held: false, holders: [], ...more });
const place = (who, more) => ({ ...who, mode: "exclusive", permits: 0, waiting_ms: 500, expires_in_ms: 4500, ...more });
const event = (kind, token, at, more) => ({ event: kind, name: "a", mode: "exclusive", holder: ann, at,
  ...(token && { fencing_token: Number(token), fencing_token_str: token }), ...more });

const tokens = (m, name = "a") => m.get(name)?.holders.map((h) => h.fencing_token_str);

test("an answer becomes a lock, with instants", () => {
  const m = new Model();
  m.seen(raw("a", { queue_length: 1, queue: [place(bob)], broken: [{ author: "x", ago_ms: 100 }] }), 990, 1000);
  const lock = m.locks.get("a");
  const [h] = lock.holders;
  deepEqual([h.since, h.expires, h.ttl, lock.held, lock.seen], [0, 10_000, 9000, true, 1000]);
  deepEqual([lock.queueLength, lock.queue[0].since, lock.queue[0].expires, lock.broken[0].at], [1, 500, 5500, 900]);
});

test("a store that knows the TTL says when a lease was renewed", () => {
  const m = new Model();
  m.seen(raw("a", { holders: [{ ...holder("5"), held_ms: 90_000, expires_in_ms: 11_000, ttl_ms: 60_000 }] }), 990, 1000);
  const [h] = m.locks.get("a").holders;
  deepEqual([h.ttl, h.expires, h.renewed, h.since], [60_000, 12_000, -48_000, -89_000], "49 s ago, though this page was opened now");
});

test("a lease without an end, and one of a foreign client", () => {
  const m = new Model();
  m.seen(raw("a", { holders: [holder("0", { held_ms: null, expires_in_ms: null, foreign: true })] }), 0, 1);
  const [h] = m.get("a").holders;
  deepEqual([h.since, h.expires, h.ttl], [undefined, null, undefined]);
});

test("a bar jumps when a lease is renewed, and does not tremble", () => {
  const m = new Model();
  m.seen(raw("a"), 0, 1000);
  m.seen(raw("a", { holders: [holder("5", { held_ms: 1980, expires_in_ms: 8030 })] }), 1990, 2000);
  deepEqual([m.get("a").holders[0].expires, m.get("a").holders[0].since], [10_000, 0]);
  m.seen(raw("a", { holders: [holder("5", { held_ms: 3000, expires_in_ms: 9500 })] }), 2990, 3000);
  deepEqual([m.get("a").holders[0].expires, m.get("a").holders[0].ttl], [12_500, 9500]);
});

test("events change holders and the queue", () => {
  const m = new Model();
  m.heard(event("acquired", "1", 10));
  deepEqual([tokens(m), m.get("a").held, m.get("a").holders[0].expires], [["1"], true, undefined]);
  m.heard(event("queued", "", 20, { holder: bob }));
  equal(m.get("a").queueLength, 1);
  m.heard(event("expired", "1", 30));
  deepEqual([tokens(m), m.get("a").held], [[], false]);
  m.heard(event("handed_over", "2", 30, { holder: bob }));
  deepEqual([tokens(m), m.get("a").queueLength, m.get("a").holders[0].host], [["2"], 0, "web-2"]);
  m.heard(event("released", "2", 40, { holder: bob }));
  equal(m.locks.size, 0, "a name that is of no interest is dropped");
});

test("each end of a lease ends it", () => {
  for (const kind of ["released", "completed", "expired", "lost", "broken"]) {
    const m = new Model();
    m.heard(event("acquired", "1", 10));
    m.heard(event(kind, "1", 20));
    equal(m.locks.size, 0, kind);
  }
});

test("who waits leaves the queue by name", () => {
  const m = new Model();
  m.seen(raw("a", { queue_length: 2, queue: [place(ann), place(bob)] }), 0, 1);
  m.heard(event("gave_up", "", 10, { holder: bob }));
  deepEqual([m.get("a").queueLength, m.get("a").queue.map((p) => p.user)], [1, ["ann"]]);
});

test("shared and semaphore add holders, exclusive replaces them", () => {
  const m = new Model();
  m.heard(event("acquired", "1", 10, { mode: "shared" }));
  m.heard(event("acquired", "2", 11, { mode: "shared" }));
  deepEqual(tokens(m), ["1", "2"]);
  m.heard(event("acquired", "3", 12));
  deepEqual(tokens(m), ["3"]);
  m.heard(event("acquired", "4", 13, { mode: "semaphore", limit: 3, permits: 2 }));
  deepEqual([tokens(m), m.get("a").limit, m.get("a").holders[0].permits], [["4"], 3, 2]);
});

test("an event that is late, or comes twice, changes nothing", () => {
  const m = new Model();
  m.heard(event("acquired", "1", 10));
  m.heard(event("released", "1", 20));
  m.heard(event("acquired", "1", 10));
  equal(m.locks.size, 0);
  m.seen(raw("a"), 100, 101);
  m.heard(event("acquired", "4", 50));
  deepEqual(tokens(m), ["5"]);
  m.heard(event("queued", "", 60, { holder: bob }));
  equal(m.get("a").queueLength, 0, "the answer of 101 knows of it");
});

test("an answer that was overtaken by events does not undo them", () => {
  const m = new Model();
  m.heard(event("acquired", "6", 50));
  m.seen(free("a"), 40, 60); // asked before the grant
  deepEqual(tokens(m), ["6"]);
  m.seen(free("a"), 55, 65); // and after it: it is over, unheard
  equal(m.locks.size, 0);

  m.seen(raw("a"), 100, 110);
  m.heard(event("released", "5", 130));
  m.seen(raw("a"), 120, 140);
  equal(m.locks.size, 0, "the lease is over");
  m.seen(raw("a", { holders: [holder("5", { released: true })] }), 120, 150);
  deepEqual([tokens(m), m.get("a").held], [["5"], false], "but may keep the name closed");
});

test("an answer about a queue that moves meanwhile is in doubt", () => {
  const m = new Model();
  m.seen(raw("a"), 0, 1);
  m.heard(event("queued", "", 20, { holder: bob }));
  equal(m.seen(raw("a", { queue_length: 1 }), 10, 30), true);
  equal(m.get("a").queueLength, 1);
  equal(m.seen(raw("a", { queue_length: 1 }), 25, 35), false);
});

test("a released lease with a minimum hold is in doubt", () => {
  const m = new Model();
  m.heard(event("acquired", "1", 10));
  equal(m.heard(event("released", "1", 20, { holder: { ...ann, labels: { "holdfast/min_hold_ms": "500" } } })), true);
});

test("a list drops what it does not have", () => {
  const m = new Model((name) => name === "watched");
  for (const name of ["a", "b", "watched"]) m.seen(raw(name), 0, 1);
  m.heard(event("acquired", "9", 120, { name: "new" }));
  m.seen(raw("b"), 100, 110);
  m.listed(100);
  deepEqual([...m.locks.keys()], ["b", "watched", "new"]);
});

test("a name that somebody watches is known while nobody has it", () => {
  let watched = true;
  const m = new Model(() => watched);
  m.seen(raw("a", { broken: [] }), 0, 1);
  m.heard(event("released", "5", 10));
  deepEqual([m.locks.size, m.get("a").held, m.get("a").lastToken], [0, false, "5"]);
  m.seen(raw("a"), 20, 30);
  deepEqual([m.locks.size, m.free.size, m.get("a").broken], [1, 0, []], "a list keeps the details of the last look");
  watched = false;
  m.unwatched("a");
  m.heard(event("released", "5", 40));
  deepEqual([m.locks.size, m.free.size], [0, 0]);
});

test("what is remembered of leases that are over is bounded", () => {
  const m = new Model();
  for (let i = 1; i <= 20_000; i++) {
    m.heard(event("acquired", String(i), i));
    m.heard(event("released", String(i), i));
  }
  equal(m.locks.size, 0);
  equal(m.remembers, 4096);
});

test("a lock is never changed in place", () => {
  const m = new Model();
  m.heard(event("acquired", "1", 10));
  const before = m.get("a");
  const copy = structuredClone(before);
  m.heard(event("queued", "", 20, { holder: bob }));
  m.heard(event("released", "1", 30));
  deepEqual(before, copy);
});
