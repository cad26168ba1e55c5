// Who waits for whom, across all names whose queues are known. Nothing here uses the page.

// group returns the process or person to which a holder or a waiter belongs, as parameters of the
// view of holders.
export function group({ caller, host, pid, user, program, person, label }) {
  const found = caller ? { caller } : {};
  if (pid) return { ...found, host, pid };
  return person ? { ...found, host, user, person: 1 } : { ...found, host, user, label, program };
}

// belongs reports whether a holder or a waiter matches the parameters of the view of holders.
export function belongs(h, params) {
  return Object.entries(params).every(([key, value]) => (key === "person" ? h.person : String(h[key] ?? "") === value));
}

// partyOf returns a key that is the same for all leases and places of one process or person. A
// lease or place without a process, person and label has a key of its own, and so has a lease that
// is foreign or released.
export function partyOf(h, lock, i) {
  if (h.foreign || h.released || !h.pid && !h.person && !h.label) return JSON.stringify([lock.name, h.fencing_token_str ?? "", h.since, i]);
  return JSON.stringify(Object.values(group(h)));
}

// blockages returns what keeps waiters waiting: deadlocks first, then by the number of waiters.
//   culprits  parties that hold names and wait for no other party: {who, holds, waits}.
//             Parties that hold the same names are together
//   circle    the culprits wait for each other; certain: no other party can free them
//   steps     the names that the culprits hold, then those that waiters hold: {lock, depth, by}
//   waiting   the number of places; longest is the oldest of them: {place, lock}
export function blockages(locks) {
  const together = new Map();
  for (const ring of rings([...partiesOf(locks).values()])) {
    const circle = ring.length > 1;
    const free = ring.every((p) => [...p.blockers].every((b) => ring.includes(b)));
    if (!free || ring.every((p) => p.holds.length === 0)) continue;
    const key = circle ? ring[0].key : "held " + ring[0].holds.map(({ lock }) => lock.name).join("\n");
    if (!together.has(key)) together.set(key, { ring, circle });
    else together.get(key).ring.push(...ring);
  }
  return [...together.values()].map(blockage)
    .sort((a, b) => b.circle - a.circle || b.waiting - a.waiting || a.longest.place.since - b.longest.place.since);
}

// partiesOf returns the holders and the waiters of all names that have a queue.
function partiesOf(locks) {
  const parties = new Map();
  const party = (h, lock, i) => {
    const key = partyOf(h, lock, i);
    if (!parties.has(key)) parties.set(key, { key, who: h, holds: [], waits: [], blockers: new Set() });
    return parties.get(key);
  };
  for (const of of locks) {
    if (!of.queue?.length) continue;
    const owners = of.holders.map((h, i) => party(h, of, i));
    const queue = of.queue.map((place, i) => party(place, of, "q" + i));
    const lock = { of, name: of.name, mode: of.mode, queue: of.queue, owners, parties: new Set(queue) };
    for (const p of new Set(owners)) p.holds.push({ lock, holder: of.holders[owners.indexOf(p)] });
    queue.forEach((p, i) => {
      p.waits.push({ lock, place: of.queue[i] });
      const blockers = fits(of, of.queue[i]) ? queue.slice(Math.max(0, i - 1), i) : owners;
      for (const b of blockers) if (b !== p) p.blockers.add(b);
    });
  }
  return parties;
}

// fits reports whether a waiter waits only because others wait before it.
function fits({ holders, mode, limit }, place) {
  if (holders.length === 0) return true;
  if (place.mode !== mode || mode === "exclusive") return false;
  return mode === "shared" || holders.reduce((n, h) => n + (h.permits || 1), place.permits || 1) <= limit;
}

// rings returns the sets of parties that wait for each other, most of them of one party (Tarjan).
// It does not recurse, because chains may be long.
function rings(all) {
  const found = [], stack = [], state = new Map();
  let n = 0;
  const enter = (p) => {
    state.set(p, { index: n, low: n++, open: true, next: [...p.blockers] });
    stack.push(p);
  };
  for (const first of all) {
    if (state.has(first)) continue;
    enter(first);
    const path = [first];
    while (path.length > 0) {
      const p = path.at(-1), s = state.get(p), q = s.next.pop();
      if (q) {
        const t = state.get(q);
        if (!t) { enter(q); path.push(q); } else if (t.open) s.low = Math.min(s.low, t.index);
        continue;
      }
      path.pop();
      const before = path.at(-1);
      if (before) state.get(before).low = Math.min(state.get(before).low, s.low);
      if (s.low < s.index) continue;
      const ring = stack.splice(stack.indexOf(p));
      for (const one of ring) state.get(one).open = false;
      found.push(ring);
    }
  }
  return found;
}

// blockage returns a blockage for its culprits. It follows the waiters from name to name.
function blockage({ ring, circle }) {
  const steps = [], shown = new Set();
  const add = (p, depth) => {
    for (const { lock } of p.holds) {
      if (!shown.has(lock.name)) steps.push({ lock, depth, by: p.who });
      shown.add(lock.name);
    }
  };
  const culprits = circle ? inOrder(ring) : ring;
  for (const p of culprits) add(p, 0);
  let longest, waiting = 0;
  for (const step of steps) { // add appends to steps in the loop
    for (const place of step.lock.queue) {
      waiting++;
      if (!longest || place.since < longest.place.since) longest = { place, lock: step.lock };
    }
    for (const p of step.lock.parties) add(p, step.depth + 1);
  }
  return { culprits, circle, certain: circle && certain(ring), steps: steps.map(({ lock, ...step }) => ({ ...step, lock: lock.of })), waiting, longest };
}

// inOrder returns the parties of a ring, each followed by one for which it waits, if possible.
function inOrder(ring) {
  const rest = new Set(ring), path = [];
  for (let p = ring[0]; p; p = [...p.blockers].find((b) => rest.has(b)) ?? rest.values().next().value) {
    rest.delete(p);
    path.push(p);
  }
  return path;
}

// certain reports whether no holder outside the ring can end the deadlock by releasing a permit.
const certain = (ring) => ring.every((p) => p.waits.every(({ lock }) => lock.mode !== "semaphore" || lock.owners.every((q) => ring.includes(q))));
