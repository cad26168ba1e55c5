// What needs attention, of all that the page knows. Nothing here uses the page.
import { blockages } from "./waits.js";

const longWait = 60_000; // ms; a waiter that waits longer needs attention
const shortest = 3000; // ms, the shortest TTL of a lease whose renewals are checked
const freshLook = 3000; // ms since the last reply about a lock

// dying returns the leases that should have been renewed, with their locks: less than a third of
// their TTL is left.
export function dying(locks, at) {
  const found = [];
  for (const lock of locks.values()) {
    for (const holder of lock.holders) {
      if (holder.released || holder.person || !(holder.ttl >= shortest) || typeof holder.expires !== "number") continue;
      if (holder.expires - at < holder.ttl / 3) found.push({ lock, holder });
    }
  }
  return found;
}

// attention returns what needs attention, the worst first: {bad, kind, name, holder, since, text}.
// In a result, since is when the problem began, and bad means that it does harm now. The argument
// since leaves out earlier losses, and lately reports whether a missed run is recent.
export function attention({ locks, losses = [], schedules = [], lately, findings = [], since = -Infinity, at }) {
  const all = [...waits(locks, at), ...renewals(locks, at), ...ended(losses.filter((e) => e.at > since)), ...jobs(schedules, lately, locks), ...findings
    .filter((f) => f.level !== "ok").map((f) => ({ kind: "store", bad: f.level === "fail", text: `${f.key.replaceAll("_", " ")}: ${f.text}` }))];
  return all.sort((a, b) => b.bad - a.bad);
}

// isLed reports whether the waiters of a lock are standbys of a leader, which may wait for ever.
export const isLed = ({ name, holders }) => name.endsWith("@schedule") || holders.some((h) => h.labels?.["holdfast/lead"]);

function waits(locks, at) {
  const found = blockages([...locks.values()].filter((lock) => !isLed(lock)));
  return found.filter((b) => b.circle || at - b.longest.place.since > longWait).map(({ circle, culprits, steps, waiting, longest }) => ({
    kind: circle ? "deadlock" : "blocked", bad: true, name: steps[0].lock.name, holder: culprits[0].who, held: culprits[0].holds[0]?.holder, waiting, since: longest.place.since,
  }));
}

const renewals = (locks, at) => dying(locks, at).filter(({ lock }) => at - lock.seen < freshLook)
  .map(({ lock, holder }) => ({ kind: "renewal", bad: true, name: lock.name, holder, since: holder.renewed ?? holder.since, expires: holder.expires }));

// ended returns one item for all lost leases, and one for each hold of a person that has expired.
function ended(losses) {
  const lost = losses.filter((e) => e.event !== "broken" && !e.holder?.person);
  const of = (kind, bad) => (e) => ({ kind, bad, name: e.name, holder: e.holder, since: e.at });
  return [...lost.slice(0, 1).map((e) => ({ ...of("lost", true)(e), count: lost.length })),
    ...losses.filter((e) => e.event === "expired" && e.holder?.person).map(of("freeze", false))];
}

// jobs returns the schedules that fail, that have no leader, or that missed runs lately.
function jobs(schedules, lately, locks) {
  return schedules.flatMap(({ name, begun, next, gaps }) => {
    const gap = gaps.at(-1);
    return [
      begun?.error && { kind: "failing", bad: true, name, day: begun.at, text: begun.error },
      next && !locks.get(name + "@schedule")?.held && { kind: "unled", bad: true, name },
      gap && lately(gap.last) && { kind: "missed", bad: false, name, day: gap.last, count: gap.count, text: gap.error },
    ].filter(Boolean);
  });
}
