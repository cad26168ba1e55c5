import test from "node:test";
import assert from "node:assert/strict";
import { path, summary, ticks } from "../web/charts.js";

test("the axis has few round numbers, and room for the highest value", () => {
  assert.deepEqual(ticks(4), [0, 1, 2, 3, 4]);
  assert.deepEqual(ticks(5), [0, 2, 4, 6]);
  assert.deepEqual(ticks(10), [0, 5, 10]);
  for (const high of [1, 1.2, 3.9, 7, 9.99, 60_000, 3_600_000, 1e9]) {
    const all = ticks(high);
    assert.ok(all.length >= 3 && all.length <= 5 && all[0] === 0 && all.at(-1) >= high && all.at(-2) < high, `${high}: ${all}`);
  }
});

test("a gap is a gap", () => {
  const xs = [-20, -15, -10, -5, 0];
  assert.equal(path(xs, [1, 2, 3, 4, 0], 4), "M-20 -25L-15 -50L-10 -75L-5 -100L0 0");
  assert.equal(path(xs, [1, 2, null, 4, 4], 4), "M-20 -25L-15 -50M-5 -100L0 -100");
  assert.equal(path(xs, [null, 2, null, null, 4], 4), "M-15 -50h0M0 -100h0", "one that stands alone is seen");
  assert.equal(path(xs, [0, 2, null, 4, 0], 4, true), "M-15 0V-50M-5 0V-100");
});

test("the summary says what the picture shows", () => {
  const line = { label: "held", say: (n) => `${n} leases`, values: [3, null, 7, 5] };
  assert.equal(summary(line, "hour"), "held: 5 leases at the end, between 3 leases and 7 leases, not known for 1 of 4 intervals. ");
  assert.equal(summary({ ...line, values: [null, null] }, "15 minutes"), "held: nothing is known of the last 15 minutes. ");
});
