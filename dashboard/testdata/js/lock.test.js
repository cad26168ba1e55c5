import test from "node:test";
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { merge, leasesOf, lanesOf, bitsOf, ticksOf, compare } from "../web/views/lock/leases.js";
import { bucketsOf, quantile } from "../web/views/lock/buckets.js";
import { sh, golang, commandsOf } from "../web/views/lock/quote.js";

const ada = { host: "a", pid: 1, label: "ada" }, bob = { host: "b", pid: 2, label: "bob" };
let ids = 0;
const event = (kind, at, token, more) => ({ id: `e${ids++}`, event: kind, at, holder: ada, mode: "exclusive", fencing_token_str: token, ...more });

test("a lease has its beginning, its end, and what it waited", () => {
  const [a, b] = leasesOf([
    event("acquired", 100, "7"), { id: "q", event: "queued", at: 150, holder: bob },
    event("released", 400, "7", { held_ms: 300 }), event("handed_over", 400, "9", { holder: bob, waited_ms: 250 }),
  ], [{ ...bob, fencing_token_str: "9", since: 401 }], 1000);
  assert.deepEqual([a.token, a.from, a.to, a.held, a.waited, a.end], ["7", 100, 400, 300, 0, "released"]);
  assert.deepEqual([b.token, b.from, b.to, b.held, b.waited, b.end, b.live], ["9", 400, 1000, 600, 250, undefined, true]);
});

test("a missing beginning is found from the end, and from who has it", () => {
  const [a, b] = leasesOf([event("broken", 500, "3", { held_ms: 450, author: "ann", reason: "its host is gone" })],
    [{ ...bob, fencing_token_str: "4", since: 500 }], 900);
  assert.deepEqual([a.from, a.to, a.end, a.author, a.reason], [50, 500, "broken", "ann", "its host is gone"]);
  assert.deepEqual([b.from, b.to, b.end], [500, 900, undefined]);
});

test("a missing end is unknown, and no later than the next lease", () => {
  const [a, b] = leasesOf([event("acquired", 100, "3"), event("acquired", 700, "4")], [], 900);
  assert.deepEqual([a.end, a.to, a.held], ["unknown", 700, undefined]);
  assert.deepEqual([b.end, b.to, b.held], ["unknown", 700, undefined]);
  const [s] = leasesOf([event("acquired", 100, "3", { mode: "shared" }), event("acquired", 700, "4", { mode: "shared" })], [], 900);
  assert.equal(s.to, 100, "another reader says nothing of this one's end");
});

test("an expiry that was noticed late ends when the lease did", () => {
  const [a] = leasesOf([event("acquired", 100, "3"), event("expired", 9000, "3", { held_ms: 300 })], [], 10000);
  assert.deepEqual([a.to, a.held, a.rough], [400, 300, false]);
  const [b] = leasesOf([event("expired", 9000, "3", { held_ms: 300 })], [], 10000);
  assert.deepEqual([b.from, b.to, b.rough], [8700, 9000, true]);
});

test("of two ends the first counts, in whichever order they are told", () => {
  const begin = event("acquired", 1, "3"), release = event("released", 5, "3", { held_ms: 4 });
  const open = event("broken", 9, "3", { held_ms: 4, author: "ann", reason: "again" });
  for (const events of [[begin, release, open], [begin, open, release]]) {
    const [a] = leasesOf(events, [], 20);
    assert.deepEqual([a.end, a.to, a.opened.author, a.opened.reason], ["released", 5, "ann", "again"]);
  }
});

test("a released holder keeps the name closed, and holds nothing", () => {
  const [a] = leasesOf([event("acquired", 1, "3"), event("released", 5, "3", { held_ms: 4 })], [{ ...ada, fencing_token_str: "3", since: 1, released: true }], 20);
  assert.deepEqual([a.to, a.end, a.live], [5, "released", false]);
});

test("foreign holders have no token, and no lease here", () => {
  assert.deepEqual(leasesOf([], [{ foreign: true, fencing_token_str: "0" }], 1), []);
});

test("events are merged once, and what was forgotten in between is a gap", () => {
  const known = [event("acquired", 1, "3"), event("released", 2, "3")];
  const one = merge(known, [known[1], event("acquired", 3, "4")], 2);
  assert.deepEqual(one.map(e => e.event), ["acquired", "released", "acquired"]);
  const two = merge(known, [event("acquired", 8, "8"), event("released", 9, "8")], 2);
  assert.deepEqual(two.map(e => e.event), ["acquired", "released", "gap", "acquired", "released"]);
  assert.deepEqual(merge(known, known), known);
  assert.deepEqual(merge([], [event("acquired", 1, "3")], 1).map(e => e.event), ["acquired"], "nothing is missed before the first look");
});

test("tokens are compared whatever their length", () => {
  assert.ok(compare("999", "1000") < 0 && compare("9007199254740993", "9007199254740992") > 0 && compare("1", "1") === 0);
});

test("lanes are holders, the latest first", () => {
  const lanes = lanesOf([{ holder: ada, token: "1" }, { holder: bob, token: "2" }, { holder: { ...ada, reason: "other" }, token: "3" }]);
  assert.deepEqual(lanes.map(l => [l.holder.label, l.leases.map(x => x.token)]), [["ada", ["1", "3"]], ["bob", ["2"]]]);
});

test("an axis has few marks, at round times of the clock", () => {
  for (let span = 3000; span < 5 * 24 * 3600e3; span *= 1.7) {
    const ticks = ticksOf(1234, 1234 + span, 7);
    assert.ok(ticks.length >= 1 && ticks.length <= 7 && ticks[0].at >= 1234 && ticks.at(-1).at <= 1234 + span, `${span}: ${ticks.length}`);
    for (const { at } of ticks) assert.equal((at + 7) % 1000, 0);
  }
});

test("a lane of 1,000 leases has bits that can be told apart, and hides no loss", () => {
  const leases = Array.from({ length: 1000 }, (_, i) => ({ token: String(i), from: 10 * i, to: 10 * i + 9, end: i === 500 ? "lost" : "released" }));
  const bits = bitsOf(leases, 0, 10_000);
  assert.ok(bits.length < 300, String(bits.length));
  assert.equal(bits.reduce((n, b) => n + b.leases.length, 0), 1000);
  assert.equal(bits.filter((b) => b.kind === "bad").length, 1);
  for (const [i, b] of bits.entries()) assert.ok(b.b - b.a >= 0.39 && b.b <= 100 && (i === 0 || b.a >= bits[i - 1].b - 1e-9), JSON.stringify(b));
  const near = bitsOf(leases, 4900, 5199);
  assert.deepEqual(near.map((b) => b.leases.length), Array(30).fill(1), "zoomed in, each is one");
  assert.deepEqual(bitsOf([{ token: "1", from: 500, to: 900, waited: 400 }], 0, 1000).map(({ a, b, kind, waited }) => [a, b, kind, waited]), [[50, 90, "held", 10]]);
});

test("durations are counted on a log scale, none is left out", () => {
  assert.deepEqual(bucketsOf([]), []);
  assert.deepEqual(bucketsOf([0]), [{ from: 0, to: 1, count: 1 }]);
  assert.deepEqual(bucketsOf([5, 3, 29.9, 30]), [{ from: 3, to: 10, count: 2 }, { from: 10, to: 30, count: 1 }, { from: 30, to: 100, count: 1 }]);
  assert.deepEqual(bucketsOf([1e12]), [{ from: 1e9, to: undefined, count: 1 }]);
  const many = Array.from({ length: 1000 }, (_, i) => 1.02 ** i);
  assert.equal(bucketsOf(many).reduce((n, b) => n + b.count, 0), 1000);
});

test("quantiles are values that there are", () => {
  assert.equal(quantile([], 0.5), undefined);
  assert.equal(quantile([7], 0.95), 7);
  assert.equal(quantile([3, 1, 2, 4], 0.5), 2);
  assert.equal(quantile(Array.from({ length: 100 }, (_, i) => i + 1), 0.95), 95);
});

const hostile = [
  "orders/42", "-rf", "--help", "'", "''", `"`, "\\", "a b", "$(touch x)", "`id`", "$HOME", "!!", "a;b|c&d>e", "*", "~", "~root", "#x", "=ls", "{a,b}", "[x]",
  "é", "名前", "😀", "\u202egnp.exe", "\u2028", "\ufeff", "\u0001", "<img src=x onerror=alert(1)>", "%2e%2e", "..", ".", "a\nb", "it's", "x".repeat(512),
];

test("a shell reads back each name", () => {
  const out = execFileSync("sh", ["-c", `printf '%s\\0' ${hostile.map(sh).join(" ")}`], { encoding: "utf8" });
  assert.deepEqual(out.split("\0").slice(0, -1), hostile);
});

test("Go reads nothing but printable characters", () => {
  for (const name of hostile) assert.doesNotMatch(golang(name), /[\p{C}\p{Zl}\p{Zp}]/u);
  assert.equal(golang(`a"b\\c`), `"a\\"b\\\\c"`);
  assert.equal(golang("\u202e\u0007😀\u{e0001}"), `"\\u202e\\u0007😀\\U000e0001"`);
  assert.equal(golang("\ud800"), `"\\ufffd"`);
});

test("a token is put in by the shell, and nothing runs that stands in the address", () => {
  const forms = ["look", "take", "break"].flatMap((what) => {
    const { cli, curl } = commandsOf(what, { name: "a'b", mode: "exclusive" }, { url: "https://h:1/$(x)/o'ps", known: true }, { token: "9223372036854775807", key: "k" });
    return [cli, curl];
  });
  const out = execFileSync("sh", ["-c", `TOKEN='t k$'; holdfast() { printf '%s\\0' "$@"; printf '\\0'; }; curl() { holdfast "$@"; }; ${forms.join("; ")}`], { encoding: "utf8" });
  const args = out.split("\0\0").slice(0, -1).map((one) => one.split("\0"));
  for (const one of args.filter((_, i) => i % 2 === 0)) assert.equal(one[one.indexOf("--store") + 1], "https://:t k$@h:1/$(x)/o'ps");
  for (const one of args.filter((_, i) => i % 2 === 1)) {
    assert.ok(one.includes("Authorization: Bearer t k$"));
    assert.ok(one.at(-1).startsWith("https://h:1/$(x)/o'ps/v1/"));
  }
  assert.match(args[5].join(" "), /"fencing_token": 9223372036854775807,/);
});
