// Which locks the table shows, and in which order. Nothing here uses the page: node can test it.
import { who } from "./format.js";

const usual = 30_000; // ms, the default TTL of a lease

// lockStates are the states for filtering the table. is reports whether a row is in a state.
export const lockStates = {
  held: { title: "Held", means: "somebody has it", is: (row) => row.held },
  contended: { title: "Contended", means: "somebody is waiting for it", is: (row) => row.waiting > 0 },
  long: { title: "Long held", means: "held for more than 5 minutes, and for more than 10 times its TTL", is: (row, now) => now > row.long },
  frozen: { title: "Frozen", means: "a person holds it, without a process", is: (row) => row.frozen },
  closed: { title: "Cooling down", means: "released, and closed until its minimum hold ends", is: (row) => row.closed },
};

// A LockRow is a lock with the values that sort and filter it. It is made once for each change of
// a lock, because the table goes through all rows ten times a second.
class LockRow {
  constructor(lock) {
    this.lock = lock;
    this.name = lock.name;
    this.held = lock.held;
    this.waiting = lock.queueLength;
    this.frozen = this.closed = false;
    this.since = Infinity; // when the oldest lease was granted
    this.long = Infinity; // from when on the lock counts as held for long
    this.holder = lock.holders[0]; // the holder of the oldest lease
    this.words = undefined;
    for (const h of lock.holders) {
      if (h.released) this.closed = true;
      else this.#held(h);
    }
  }

  #held(h) {
    if (h.since < this.since || this.holder.released) this.holder = h;
    if (h.since < this.since) this.since = h.since;
    if (h.person) this.frozen = true;
    // Ten TTLs, because a long TTL announces long work, and at least five minutes. A person
    // states the time of a hold, so a hold by a person is never long.
    else this.long = Math.min(this.long, h.since + Math.max(5 * 60_000, 10 * (h.ttl || usual)) || Infinity);
  }

  // says reports whether a holder has whose in its name and why in its reason.
  says(whose, why) {
    this.words ??= this.lock.holders.map((h) => [who(h).toLowerCase(), (h.reason || "").toLowerCase()]);
    return this.words.some(([a, b]) => a.includes(whose) && b.includes(why));
  }
}

// The orders of the table. A "-" before the name reverses the order.
const orders = {
  name: () => 0,
  held: (a, b) => (a.since === b.since ? 0 : a.since - b.since), // the longest first
  queue: (a, b) => b.waiting - a.waiting, // the longest first
};

function comparing(sort) {
  const [, back, by] = /^(-?)(.*)$/.exec(sort);
  const order = Object.hasOwn(orders, by) ? orders[by] : orders.name;
  const way = back ? -1 : 1;
  const byName = order === orders.name ? way : 1;
  return (a, b) => way * order(a, b) || (a.name < b.name ? -byName : byName);
}

// Rows keeps the locks in order from one change to the next: to move a few locks takes a fraction
// of the time that sorting all of them takes.
export class Rows {
  #all = [];
  #known = new Set();
  shown = [];
  counts = {};

  // update finds the locks that pass the filter; locks is a Map by name.
  update(locks, { prefix, holder, reason, state, sort }, now) {
    this.#learn(locks);
    this.#all.sort(comparing(sort));
    const whose = holder.toLowerCase(), why = reason.toLowerCase();
    const kinds = Object.entries(lockStates);
    const { shown } = this;
    const n = kinds.map(() => 0);
    const any = !Object.hasOwn(lockStates, state);
    shown.length = 0;
    for (const row of this.#all) {
      if (!row.name.startsWith(prefix) || ((whose || why) && !row.says(whose, why))) continue;
      let fits = any;
      for (let i = 0; i < kinds.length; i++) {
        if (!kinds[i][1].is(row, now)) continue;
        n[i]++;
        fits ||= kinds[i][0] === state;
      }
      if (fits) shown.push(row);
    }
    kinds.forEach(([key], i) => { this.counts[key] = n[i]; });
    return this;
  }

  #learn(locks) {
    const all = this.#all;
    let n = 0;
    for (const row of all) {
      const lock = locks.get(row.name);
      if (lock) all[n++] = lock === row.lock ? row : new LockRow(lock);
      else this.#known.delete(row.name);
    }
    all.length = n;
    if (n === locks.size) return;
    for (const [name, lock] of locks) {
      if (this.#known.has(name)) continue;
      this.#known.add(name);
      all.push(new LockRow(lock));
    }
  }
}

// rowsNear returns which rows to draw so that no gap is visible: first, up to but not including
// last. The range moves in steps, so that not every bit of scrolling changes the page.
export function rowsNear(top, height, row) {
  const step = 8;
  return { first: Math.max(0, Math.floor(top / row / step - 1) * step), last: Math.max(0, Math.ceil((top + height) / row / step + 1) * step) };
}

// moved returns the row to which a key moves, or undefined if the key does not move.
export function moved(key, index, page, total) {
  const to = { ArrowDown: index + 1, ArrowUp: index - 1, PageDown: index + page, PageUp: index - page, Home: 0, End: total - 1 }[key];
  return to === undefined || total === 0 ? undefined : Math.min(Math.max(to, 0), total - 1);
}
