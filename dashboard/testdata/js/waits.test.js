import test from "node:test";
import { deepEqual, equal } from "node:assert/strict";
import { belongs, blockages, group, partyOf } from "../web/waits.js";

let token = 0;
const job = (who, more) => ({ host: who, pid: 1, user: "u", program: "p", person: false, label: "", ...more });
const hold = (who, more) => ({ ...job(who), fencing_token_str: String(++token), permits: 0, released: false, foreign: false, since: 0, ...more });
const wait = (who, since = 100, more) => ({ ...job(who), mode: "exclusive", permits: 0, since, ...more });

// lock is one that the first have and the others wait for. Texts are hosts.
const lock = (name, holders, queue, more) => ({ name, mode: "exclusive", limit: 0,
  holders: holders.map((h) => (typeof h === "string" ? hold(h) : h)),
  queue: queue.map((q) => (typeof q === "string" ? wait(q) : q)), ...more });

const told = (locks) => blockages(locks).map((b) => [
  b.culprits.map((p) => p.who.host).join("+") + (b.circle ? (b.certain ? " circle" : " circle?") : ""),
  b.steps.map((s) => "  ".repeat(s.depth) + s.lock.name).join("\n"), b.waiting, b.longest.place.host]);

test("nobody waits", () => {
  deepEqual(told([]), []);
  deepEqual(told([lock("a", ["x"], []), { ...lock("b", ["x"], []), queue: undefined }]), []);
});

test("a chain begins with whoever waits for nobody", () => {
  deepEqual(told([
    lock("c", ["y"], [wait("z", 5)]),
    lock("a", ["culprit"], [wait("x", 30)]),
    lock("b", ["x"], [wait("y", 20), wait("w", 10)]),
  ]), [["culprit", "a\n  b\n    c", 4, "z"]]);
});

test("several culprits, those first for whom most wait", () => {
  deepEqual(told([lock("a", ["x"], ["p"]), lock("b", ["y"], ["q", "r"]), lock("c", ["z"], [wait("s", 1)])]),
    [["y", "b", 2, "q"], ["z", "c", 1, "s"], ["x", "a", 1, "p"]]);
});

test("a culprit that holds several names is one", () => {
  deepEqual(told([lock("a", ["x"], ["p"]), lock("b", ["x"], ["q"])]), [["x", "a\nb", 2, "p"]]);
});

test("two that wait for each other come first, with those who wait for them", () => {
  deepEqual(told([
    lock("big", ["x"], ["1", "2", "3", "4"]),
    lock("a", ["p"], ["q"]), lock("b", ["q"], ["p"]), lock("c", ["r"], ["s"]), lock("d", ["p"], ["r"]),
  ]), [["p+q circle", "a\nd\nb\n  c", 4, "q"], ["x", "big", 4, "1"]]);
});

test("a circle of three is told in its order", () => {
  deepEqual(told([lock("a", ["p"], ["r"]), lock("b", ["q"], ["p"]), lock("c", ["r"], ["q"])]).map((t) => t[0]), ["p+q+r circle"]);
});

test("who waits for a circle is no culprit, and a circle that waits for somebody is none", () => {
  deepEqual(told([
    lock("a", ["p"], ["q"]), lock("b", ["q"], ["p"]), lock("out", ["x"], ["p"]),
  ]).map((t) => t[0]), ["x"]);
});

test("who shares a name holds it up together", () => {
  deepEqual(told([lock("a", ["x", "y"], ["p"], { mode: "shared" })]), [["x+y", "a", 1, "p"]]);
});

test("one of those who share a name waits elsewhere", () => {
  deepEqual(told([lock("a", ["x", "y"], ["p"], { mode: "shared" }), lock("b", ["z"], ["x"])]).map((t) => [t[0], t[1]]),
    [["z", "b\n  a"], ["y", "a"]]);
});

test("who would fit in waits for those who came before", () => {
  const shared = (who) => wait(who, 100, { mode: "shared" });
  deepEqual(told([
    lock("a", ["x"], ["w", shared("v")], { mode: "shared" }), lock("b", ["v"], ["x"]),
  ]).map((t) => t[0]), ["x+v+w circle"]);
  deepEqual(told([lock("a", [], ["w"])]), [], "it is granted any moment");
});

test("a circle through a semaphore ends if another holder gives a permit back", () => {
  const two = { mode: "semaphore", limit: 2 };
  const permit = (who) => hold(who, { permits: 1 });
  const wants = (who) => wait(who, 100, { mode: "semaphore", permits: 1 });
  deepEqual(told([lock("s", [permit("p"), permit("other")], [wants("q")], two), lock("a", ["q"], ["p"])]).map((t) => t[0]),
    ["other"], "the other one holds it up");
  deepEqual(told([lock("s", [permit("p"), permit("r")], [wants("q")], two), lock("a", ["q"], ["p", "r"])]).map((t) => t[0]),
    ["p+q+r circle"]);
});

test("people, foreign clients, and names that are kept closed are culprits", () => {
  deepEqual(told([lock("a", [hold("ops", { pid: 0, person: true, user: "ada" })], ["x"]), lock("b", ["x"], ["y"])]), [["ops", "a\n  b", 2, "x"]]);
  deepEqual(told([lock("a", [hold("", { foreign: true, pid: 0 })], ["x"]), lock("b", [hold("", { foreign: true, pid: 0 })], ["y"])]).length, 2);
  deepEqual(told([lock("a", [hold("x", { released: true })], ["y"]), lock("b", ["y"], ["x"])]).map((t) => [t[0], t[1]]), [["x", "a\n  b"]]);
});

test("a process that waits for itself is a culprit like others", () => {
  deepEqual(told([lock("a", ["x"], ["x"])]), [["x", "a", 1, "x"]]);
});

test("clients that say nothing of themselves are not taken for each other", () => {
  const nobody = { host: "", pid: 0, user: "anonymous", program: "", label: "" };
  const locks = [lock("a", [hold("", nobody)], [wait("", 1, nobody)]), lock("b", [hold("", nobody)], [wait("", 2, nobody)])];
  deepEqual(told(locks).map((t) => t[1]), ["a", "b"]);
  equal(partyOf(job("h", { pid: 0, label: "l" }), locks[0], 0), partyOf(job("h", { pid: 0, label: "l" }), locks[1], 0));
});

test("a long chain is no trouble", () => {
  const n = 5000;
  const locks = Array.from({ length: n }, (_, i) => lock("n" + i, ["h" + i], ["h" + (i + 1)]));
  const [b, ...others] = blockages(locks);
  deepEqual([b.culprits[0].who.host, b.steps.length, b.waiting, others.length], ["h0", n, n, 0]);
});

test("the address of a group names it", () => {
  for (const h of [job("h"), job("h", { pid: 0, person: true }), job("h", { pid: 0, label: "l" }), job("h", { caller: "ci" })]) {
    const params = Object.fromEntries(Object.entries(group(h)).map(([k, v]) => [k, String(v)]));
    equal(belongs(h, params), true);
    equal(belongs({ ...h, host: "other" }, params), false);
    equal(h.caller ? belongs({ ...h, caller: "eve" }, params) : false, false);
  }
  equal(belongs(job("h"), { host: "h" }), true);
});
