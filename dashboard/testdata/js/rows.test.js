import test from "node:test";
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { Rows, lockStates, moved, rowsNear } from "../web/rows.js";
import { left } from "../web/left.js";

const minute = 60_000;
const now = 1_000 * minute;
const all = { prefix: "", holder: "", reason: "", state: "", sort: "" };

const holder = (more) => ({ user: "app", host: "web-1", pid: 7, program: "worker", label: "", reason: "", since: now - 1000, ttl: 30_000, released: false, person: false, ...more });
const lock = (name, ...holders) => ({ name, held: holders.some((h) => !h.released), holders, queueLength: 0 });
const waited = (n, one) => ({ ...one, queueLength: n });
const mapOf = (...locks) => new Map(locks.map((one) => [one.name, one]));
const names = (rows) => rows.shown.map((row) => row.name).join(" ");
const find = (locks, filter) => names(new Rows().update(locks, { ...all, ...filter }, now));

test("the filter narrows by all that it says", () => {
  const locks = mapOf(
    lock("orders/1", holder({ reason: "Nightly report" })),
    lock("orders/2", holder({ host: "web-2" }), holder({ label: "Billing", reason: "deploy" })),
    lock("order", holder({ foreign: true })),
    waited(1, lock("queue")));
  for (const [filter, want] of [
    [{}, "order orders/1 orders/2 queue"],
    [{ prefix: "orders/" }, "orders/1 orders/2"],
    [{ prefix: "Orders" }, ""],
    [{ holder: "WEB-2" }, "orders/2"],
    [{ holder: "pid 7" }, "orders/1 orders/2"],
    [{ holder: "not holdfast" }, "order"],
    [{ reason: "night" }, "orders/1"],
    [{ holder: "web-2", reason: "deploy" }, ""], // not of one and the same holder
    [{ holder: "billing", reason: "deploy" }, "orders/2"],
    [{ state: "contended" }, "queue"],
    [{ state: "held" }, "order orders/1 orders/2"],
    [{ state: "toString" }, "order orders/1 orders/2 queue"], // of an address that somebody has made up
  ]) equal(find(locks, filter), want, JSON.stringify(filter));
});

test("states, and how many are in each", () => {
  const person = holder({ person: true, since: now - 100 * minute });
  const locks = mapOf(
    lock("a", holder()),
    waited(2, lock("b", holder())),
    lock("c", person),
    lock("d", holder({ released: true })),
    lock("e", holder({ released: true }), holder()),
    lock("f", holder({ since: now - 5 * minute - 1 })),
    lock("g", holder({ since: now - 5 * minute })),
    lock("h", holder({ since: now - 9 * minute, ttl: minute })),
    lock("i", holder({ since: now - 11 * minute, ttl: minute })),
    lock("j", holder({ since: now - 6 * minute, ttl: undefined, expires: null })),
    lock("k", holder({ since: undefined })));
  const want = { held: "a b c e f g h i j k", contended: "b", long: "f i j", frozen: "c", closed: "d e" };
  const { counts } = new Rows().update(locks, all, now);
  for (const state of Object.keys(lockStates)) {
    equal(find(locks, { state }), want[state], state);
    equal(counts[state], want[state].split(" ").length, state);
  }
});

test("sorted by each column, both ways", () => {
  const locks = mapOf(
    lock("b", holder({ since: 30 })),
    waited(3, lock("c", holder({ since: 20 }), holder({ since: 10 }))),
    waited(1, lock("d", holder({ since: 20 }))),
    lock("a", holder({ since: undefined })));
  for (const [sort, want] of [
    ["", "a b c d"], ["name", "a b c d"], ["-name", "d c b a"], ["held", "c d b a"], ["-held", "a b d c"],
    ["queue", "c d a b"], ["-queue", "a b d c"], ["--", "d c b a"], ["constructor", "a b c d"],
  ]) equal(find(locks, { sort }), want, sort);
});

test("the order stays right through changes", () => {
  const locks = new Map();
  const rows = new Rows();
  let seed = 1;
  const dice = (n) => (seed = (seed * 48_271) % 2_147_483_647) % n;
  for (let round = 0; round < 200; round++) {
    for (let i = 0; i < 20; i++) {
      const name = `n${dice(100)}`;
      if (dice(3) === 0) locks.delete(name);
      else locks.set(name, waited(dice(4), lock(name, holder({ since: dice(50), host: `web-${dice(3)}` }))));
    }
    const filter = { ...all, sort: ["", "held", "-queue"][dice(3)], holder: ["", "web-1"][dice(2)], state: ["", "contended"][dice(2)] };
    equal(names(rows.update(locks, filter, now)), names(new Rows().update(new Map(locks), filter, now)), `round ${round}`);
    for (const row of rows.shown) equal(row.lock, locks.get(row.name));
  }
});

test("a row shows whoever has had the lock for the longest", () => {
  const [old, young, over] = [holder({ since: 10 }), holder({ since: 20 }), holder({ since: 5, released: true })];
  const shown = (...holders) => new Rows().update(mapOf(lock("a", ...holders)), all, now).shown[0].holder;
  equal(shown(young, old), old);
  equal(shown(over, young), young);
  equal(shown(over), over);
  equal(shown(), undefined);
});

test("the rows that are there reach beyond what is seen", () => {
  deepEqual(rowsNear(0, 680, 34), { first: 0, last: 32 });
  for (let top = 0; top < 5000; top += 17) {
    const { first, last } = rowsNear(top, 680, 34);
    ok(first * 34 <= Math.max(0, top - 8 * 34) && last * 34 >= top + 680 + 8 * 34, `at ${top}: ${first} to ${last}`);
    ok(last - first < 50);
  }
  deepEqual(rowsNear(-5000, 680, 34), { first: 0, last: 0 });
});

test("keys move within the table", () => {
  for (const [key, index, want] of [
    ["ArrowDown", -1, 0], ["ArrowDown", 9, 9], ["ArrowUp", 0, 0], ["ArrowUp", 5, 4], ["PageDown", 3, 7], ["PageDown", 8, 9],
    ["PageUp", 3, 0], ["Home", 5, 0], ["End", 5, 9], ["x", 5, undefined],
  ]) equal(moved(key, index, 4, 10), want, key);
  equal(moved("End", 0, 4, 0), undefined);
});

test("what is said of the time left", () => {
  const said = (more) => { const { kind, word, share } = left(holder({ ttl: 30_000, ...more }), now); return [kind, word, share]; };
  deepEqual(said({ expires: now + 15_000 }), ["live", "15 s", 0.5]);
  deepEqual(said({ expires: now + 3000 }), ["low", "3 s", 0.1]);
  deepEqual(said({ expires: now + 60_000 }), ["live", "1 m", 1]);
  deepEqual(said({ expires: now + 60_000, ttl: undefined }), ["live", "1 m", 1]);
  deepEqual(said({ expires: now }), ["over", "expired", undefined]);
  deepEqual(said({ expires: null }), ["never", "no expiry", undefined]);
  deepEqual(said({ expires: undefined }), ["unknown", "…", undefined]);
  const frozen = said({ expires: now + 15_000, person: true });
  match(frozen[1], /^until (\d\d-\d\d )?\d\d:\d\d:\d\d$/);
  deepEqual([frozen[0], frozen[2]], ["frozen", 0.5]);
  deepEqual(said({ expires: now + 15_000, released: true }), ["closed", "cooling down", 0.5]);
  equal(left(holder({ expires: now + 12_000 }), now).text, "12 s left of 30 s, unless it is renewed");
  equal(left(holder({ expires: now + 26_000, renewed: now - 4000, since: now - 90_000 }), now).text, "26 s left of 30 s, renewed 4 s ago");
  equal(left(holder({ expires: now + 11_000, renewed: now - 49_000, since: now - 49_000, ttl: 60_000 }), now).kind, "low", "of a holder that died, whenever the page was opened");
});
