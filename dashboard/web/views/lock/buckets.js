// Durations, counted on a log scale.

// Bounds of buckets in ms: 1, 3, 10, 30 and so on, to eleven days.
const bounds = Array.from({ length: 19 }, (_, i) => (i % 2 ? 3 : 1) * 10 ** Math.floor(i / 2));

// bucketsOf counts durations in buckets: {from, to, count}. It leaves out empty buckets at both
// ends. A bucket for durations below all bounds begins at 0; one above all bounds has no end.
export function bucketsOf(values) {
  const counts = new Array(bounds.length + 1).fill(0);
  for (const v of values) counts[bounds.findLastIndex(b => v >= b) + 1]++;
  const first = counts.findIndex(n => n), last = counts.findLastIndex(n => n);
  return counts
    .map((count, i) => ({ from: i ? bounds[i - 1] : 0, to: bounds[i], count }))
    .slice(Math.max(first, 0), last + 1);
}

// quantile returns the value that a share of all values does not exceed, undefined without values.
export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}
