// Which locks the table shows, and in which order. Nothing here knows of a page, so that node
// can test it.
import { who } from "./format.js";

const usual = 30_000; // the TTL of a lease that nobody has told another

// The states that the table can be narrowed down to: what each is called, what it means, and
// whether a row is in it.
export const lockStates = {
  held: { title: "Held", means: "somebody has it", is: (row) => row.held },
  contended: { title: "Contended", means: "somebody is waiting for it", is: (row) => row.waiting > 0 },
  long: { title: "Long held", means: "held for more than 5 minutes, and for more than 10 times its TTL", is: (row, now) => now > row.long },
  frozen: { title: "Frozen", means: "a person holds it, without a process", is: (row) => row.frozen },
  closed: { title: "Cooling down", means: "released, and closed until its minimum hold ends", is: (row) => row.closed },
};

// A LockRow is a lock, and what sorts and filters it. It is made once for each change of a lock:
// to look at all of them ten times a second, it has to be cheap.
class LockRow {
  constructor(lock) {
    this.lock = lock;
    this.name = lock.name;
    this.held = lock.held;
    this.waiting = lock.queueLength;
    this.frozen = this.closed = false;
    this.since = Infinity; // when it was granted to whoever has it for the longest
    this.long = Infinity; // from when on it is held long
    this.holder = lock.holders[0]; // the one that has it for the longest
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
    // As long as many renewals take, and long enough for a person to care. Whoever asks for
    // a long TTL says that the work is long, and a person says so as well.
    else this.long = Math.min(this.long, h.since + Math.max(5 * 60_000, 10 * (h.ttl || usual)) || Infinity);
  }

  // says reports whether one of the holders is called this, and holds it because of that.
  says(whose, why) {
    this.words ??= this.lock.holders.map((h) => [who(h).toLowerCase(), (h.reason || "").toLowerCase()]);
    return this.words.some(([a, b]) => a.includes(whose) && b.includes(why));
  }
}

// What the table is sorted by. The other way round is "-" before it.
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

// Rows has the locks in order, from one change to the next: to put a few where they belong
// takes a fraction of what it takes to sort all.
export class Rows {
  #all = [];
  #known = new Set();
  shown = [];
  counts = {};

  // update finds the locks that the filter lets through, of a Map by name.
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

// rowsNear is which rows are to be there so that one sees no gap: from first to before last. It
// moves in steps, so that not every bit of scrolling changes the page.
export function rowsNear(top, height, row) {
  const step = 8;
  return { first: Math.max(0, Math.floor(top / row / step - 1) * step), last: Math.max(0, Math.ceil((top + height) / row / step + 1) * step) };
}

// moved is the row where a key leads to, or undefined if it is not one that moves.
export function moved(key, index, page, total) {
  const to = { ArrowDown: index + 1, ArrowUp: index - 1, PageDown: index + page, PageUp: index - page, Home: 0, End: total - 1 }[key];
  return to === undefined || total === 0 ? undefined : Math.min(Math.max(to, 0), total - 1);
}
