import test from "node:test";
import { deepEqual, equal } from "node:assert/strict";
import { attention, dying } from "../web/attention.js";
import { meanings, note } from "../web/find.js";

const at = 1_000_000;
const job = (pid, more) => ({ host: "h" + pid, pid, user: "u", program: "p", person: false, label: "", reason: "", labels: {}, ...more });
const holds = (who, more) => ({ ...who, fencing_token_str: String(who.pid), since: at - 90_000, expires: at + 25_000, ttl: 30_000, released: false, foreign: false, ...more });
const waits = (who, ms) => ({ ...who, mode: "exclusive", permits: 0, since: at - ms });
const lock = (name, holders, queue = [], more) => [name, { name, mode: "exclusive", limit: 0, holders, held: holders.length > 0, queue, queueLength: queue.length, seen: at, ...more }];
const of = (locks, more) => attention({ locks: new Map(locks), at, ...more }).map(({ kind, name, bad }) => [kind, name, bad]);

test("all is well where nobody waits for long and all leases are renewed", () => {
  deepEqual(of([lock("a", [holds(job(1))], [waits(job(2), 59_000)]), lock("b", [])]), []);
});

test("who waits for more than a minute is named with who blocks it", () => {
  const nora = job(0, { user: "nora", person: true });
  const [found] = attention({ locks: new Map([lock("deploy", [holds(nora, { expires: at + 3_600_000 })], [waits(job(2), 166_000), waits(job(3), 1000)])]), at });
  deepEqual([found.kind, found.name, found.holder.user, found.held.expires, found.waiting, found.since], ["blocked", "deploy", "nora", at + 3_600_000, 2, at - 166_000]);
});

test("a deadlock needs somebody at once", () => {
  const [a, b] = [job(1), job(2)];
  deepEqual(of([lock("x", [holds(a)], [waits(b, 500)]), lock("y", [holds(b)], [waits(a, 400)])]), [["deadlock", "x", true]]);
});

test("a lease that is not renewed is found by its TTL, if it was looked at lately", () => {
  const dead = lock("job", [holds(job(1), { expires: at + 9000, renewed: at - 21_000 })]);
  deepEqual(of([dead]), [["renewal", "job", true]]);
  deepEqual(of([[dead[0], { ...dead[1], seen: at - 4000 }]]), [], "it may have been renewed since");
  equal(dying(new Map([dead]), at).length, 1);
  deepEqual(of([lock("p", [holds(job(1, { person: true }), { expires: at + 1000 })])]), [], "a person renews nothing");
  deepEqual(of([lock("d", [holds(job(1), { expires: at + 1000, released: true })])]), []);
});

test("losses, expired holds, schedules and the store", () => {
  const event = (kind, name, more) => ({ event: kind, name, at: at - 1000, holder: job(1), ...more });
  deepEqual(of([], { losses: [event("expired", "j"), event("broken", "b"), event("expired", "f", { holder: job(2, { person: true }) }), event("lost", "old", { at: 1 })], since: at - 5000 }),
    [["lost", "j", true], ["freeze", "f", false]]);
  const s = (more) => ({ name: "s", gaps: [], begun: null, ...more });
  deepEqual(of([lock("l@schedule", [holds(job(1))], [waits(job(2), 900_000)])], { lately: () => true, schedules: [s(), s({ name: "f", begun: { error: "exit 1", at: "x" } }), s({ name: "n", next: "x" }), s({ name: "l", next: "x" }), s({ name: "m", gaps: [{ last: "x", count: 3 }] })] }),
    [["failing", "f", true], ["unled", "n", true], ["missed", "m", false]]);
  deepEqual(of([], { lately: () => false, schedules: [s({ name: "m", gaps: [{ last: "x", count: 3 }] })] }), [], "a miss of last month");
  deepEqual(of([], { findings: [{ key: "server", level: "ok" }, { key: "clock_step", level: "warn", text: "t" }] }), [["store", undefined, false]]);
});

test("a search finds names, people, reasons and labels", () => {
  const locks = new Map([lock("deploy/shop", [holds(job(1, { reason: "release 1.4", labels: { ticket: "INC-7", "holdfast/names": "inc" } }))]), lock("shop", [holds(job(2))], [waits(job(1), 5)]), lock("a/shop/b", [])]);
  deepEqual(meanings(locks, "SHOP ").names.map(({ lock: l }) => l.name), ["shop", "deploy/shop", "a/shop/b"], "those that begin so, first");
  deepEqual(meanings(locks, "h1").people, [{ key: "host", value: "h1", holds: 1, waits: 1 }]);
  deepEqual(meanings(locks, "1.4"), { names: [{ lock: locks.get("deploy/shop"), why: "release 1.4" }], people: [], reasons: 1 });
  deepEqual(meanings(locks, "ticket=inc").names.map(({ why }) => why), ["ticket=INC-7"]);
  deepEqual(meanings(locks, " "), { names: [], people: [], reasons: 0 });
  equal(note(locks.get("shop")), "u@h2 (pid 2, p) · 1 waiting");
});
