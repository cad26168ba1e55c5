// The search among all locks. Nothing here uses the page.
import { who } from "./format.js";

const most = 6; // results of each kind

// meanings returns what a text may mean: {names, people, reasons}. names are {lock, why}, first the
// locks whose names begin with the text. people are {key, value, holds, waits}; key is caller,
// user, host, label or program. reasons is the number of locks with the text in a reason.
export function meanings(locks, text) {
  const wanted = text.trim().toLowerCase();
  const names = [], more = [], people = new Map();
  let reasons = 0;
  if (!wanted) return { names, people: [], reasons };
  const has = (value) => String(value ?? "").toLowerCase().includes(wanted);
  const meet = (h, kind) => {
    for (const key of ["caller", "user", "host", "label", "program"]) {
      if (!has(h[key]) || h.foreign) continue;
      const id = key + " " + h[key];
      if (!people.has(id)) people.set(id, { key, value: h[key], holds: 0, waits: 0 });
      people.get(id)[kind]++;
    }
  };
  for (const lock of locks.values()) {
    const at = lock.name.toLowerCase().indexOf(wanted);
    if (at === 0) names.push({ lock });
    else if (at > 0) more.push({ lock });
    for (const h of lock.holders) meet(h, "holds");
    for (const p of lock.queue ?? []) meet(p, "waits");
    const holder = lock.holders.find((h) => has(h.reason));
    if (holder) reasons++;
    const label = lock.holders.flatMap((h) => Object.entries(h.labels ?? {})).map(([key, value]) => `${key}=${value}`).find((one) => has(one) && !one.startsWith("holdfast/"));
    if (at < 0 && (label || holder)) more.push({ lock, why: label ?? holder.reason });
  }
  const busiest = (a, b) => b.holds + b.waits - a.holds - a.waits;
  const shortest = (a, b) => a.lock.name.length - b.lock.name.length || (a.lock.name < b.lock.name ? -1 : 1);
  return { names: [...names.sort(shortest), ...more].slice(0, most), people: [...people.values()].sort(busiest).slice(0, most), reasons };
}

// note returns who holds a lock, and how many wait.
export function note({ holders, queueLength }) {
  const [h] = holders;
  return [h ? who(h) : "free", queueLength ? `${queueLength} waiting` : ""].filter(Boolean).join(" · ");
}
