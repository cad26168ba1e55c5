// What needs somebody, of all that is known. Nothing here knows of a page.
import { blockages } from "./waits.js";

const longWait = 60_000; // ms, that somebody may wait
const shortest = 3000; // TTL, of a lease whose renewals are looked at
const freshLook = 3000; // since a look

// dying returns the locks with a lease that should have been renewed, as far as is known: it has
// less than a third of its time left.
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

// attention returns what needs somebody, the worst first: {bad, kind, name, holder, since, text}.
// since is when it began, and bad says that it does harm now. Losses count since an instant, and
// missed runs if lately() says so of their time of day.
export function attention({ locks, losses = [], schedules = [], lately, findings = [], since = -Infinity, at }) {
  const all = [...waits(locks, at), ...renewals(locks, at), ...ended(losses.filter((e) => e.at > since)), ...jobs(schedules, lately, locks), ...findings
    .filter((f) => f.level !== "ok").map((f) => ({ kind: "store", bad: f.level === "fail", text: `${f.key.replaceAll("_", " ")}: ${f.text}` }))];
  return all.sort((a, b) => b.bad - a.bad);
}

// isLed reports whether those who wait for a lock stand by to lead, as long as it may take.
export const isLed = ({ name, holders }) => name.endsWith("@schedule") || holders.some((h) => h.labels?.["holdfast/lead"]);

function waits(locks, at) {
  const found = blockages([...locks.values()].filter((lock) => !isLed(lock)));
  return found.filter((b) => b.circle || at - b.longest.place.since > longWait).map(({ circle, culprits, steps, waiting, longest }) => ({
    kind: circle ? "deadlock" : "blocked", bad: true, name: steps[0].lock.name, holder: culprits[0].who, held: culprits[0].holds[0]?.holder, waiting, since: longest.place.since,
  }));
}

const renewals = (locks, at) => dying(locks, at).filter(({ lock }) => at - lock.seen < freshLook)
  .map(({ lock, holder }) => ({ kind: "renewal", bad: true, name: lock.name, holder, since: holder.renewed ?? holder.since, expires: holder.expires }));

// ended are freezes that have expired, and all leases that were lost together.
function ended(losses) {
  const lost = losses.filter((e) => e.event !== "broken" && !e.holder?.person);
  const of = (kind, bad) => (e) => ({ kind, bad, name: e.name, holder: e.holder, since: e.at });
  return [...lost.slice(0, 1).map((e) => ({ ...of("lost", true)(e), count: lost.length })),
    ...losses.filter((e) => e.event === "expired" && e.holder?.person).map(of("freeze", false))];
}

// jobs are schedules that fail, have no leader, or were missed lately.
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
