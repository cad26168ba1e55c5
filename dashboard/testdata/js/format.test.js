import test from "node:test";
import { deepEqual, equal } from "node:assert/strict";
import { ago, count, duration, later, pieces, plain, rate, token, who, whole } from "../web/format.js";

test("durations have two units at most", () => {
  for (const [ms, want] of [
    [-5, "0 s"], [0, "0 s"], [0.4, "1 ms"], [850, "850 ms"], [999.9, "999 ms"], [1000, "1.0 s"], [9990, "9.9 s"], [10_000, "10 s"],
    [59_999, "59 s"], [60_000, "1 m"], [192_000, "3 m 12 s"], [3_600_000, "1 h"], [3_661_000, "1 h 1 m"], [86_399_999, "23 h 59 m"],
    [86_400_000, "1 d"], [180_000_000, "2 d 2 h"], [undefined, "unknown"], [null, "unknown"], [NaN, "0 s"],
  ]) equal(duration(ms), want, String(ms));
  deepEqual([0, 999, 1999, 9999, 10_000, 61_000].map(whole), ["0 s", "0 s", "1 s", "9 s", "10 s", "1 m 1 s"]);
});

test("instants are told from now", () => {
  deepEqual([1000, 500, 1500, -4000, 6000, undefined, null].map((at) => ago(at, 1000)),
    ["now", "now", "now", "5 s ago", "in 5 s", "unknown", "unknown"]);
});

test("numbers", () => {
  deepEqual([0, 999, 10_000, 1_234_567, undefined].map(count), ["0", "999", "10,000", "1,234,567", "0"]);
  deepEqual([0, 0.25, 12.34, 1234.5].map(rate), ["0/s", "0.25/s", "12.3/s", "1,235/s"]);
  deepEqual(["0", "", undefined, "42", "1795256697547813"].map(token), ["none", "none", "none", "42", "…547813"]);
});

test("tokens are compared as numbers, also those that a number of JavaScript cannot be", () => {
  equal(later("10", "9"), true);
  equal(later("9", "10"), false);
  equal(later("18446744073709551615", "18446744073709551614"), true);
  equal(later("5", "5"), false);
});

test("holders are named as the command names them", () => {
  for (const [holder, want] of [
    [{ user: "deploy", host: "web-3", pid: 812, program: "worker", label: "orders" }, "orders on deploy@web-3 (pid 812, worker)"],
    [{ user: "ada", host: "ops-1", person: true }, "ada@ops-1 (a person)"],
    [{ user: "anonymous", host: "", pid: 0, program: "", label: "worker-7" }, "worker-7 on anonymous"],
    [{ host: "web-4", pid: 9 }, "web-4 (pid 9)"],
    [{ foreign: true, host: "x" }, "a client that is not holdfast"],
    [{}, "another client"],
    [{ caller: "ci", user: "deploy", host: "web-3", pid: 812, label: "worker" }, "ci as worker on deploy@web-3 (pid 812)"],
    [{ caller: "ci", user: "ci", host: "web-3", label: "worker" }, "ci as worker on web-3"],
    [{ caller: "ci", user: "ci", host: "web-3", pid: 812 }, "ci@web-3 (pid 812)"],
    [{ caller: "eve", user: "ci", host: "web-3" }, "eve as ci@web-3"],
    [{ caller: "ada", user: "ada", person: true }, "ada (a person)"],
    [{ caller: "ci" }, "ci"],
  ]) equal(who(holder), want);
});

test("what cannot be seen, or turns a text around, is written out", () => {
  deepEqual(pieces("a\u202eb"), [{ text: "a" }, { odd: "U+202E" }, { text: "b" }]);
  equal(plain("\u0000\n\u200b\ufeff\u2066x"), "[U+0000][U+000A][U+200B][U+FEFF][U+2066]x");
  const fine = "<img src=x onerror=alert(1)> 👩‍👩‍👧 لوحة ünïcödé";
  deepEqual(pieces(fine), [{ text: fine }]);
  deepEqual(pieces(""), []);
});
