// The state of all locks, from the replies and events of the server. The model has no timers and
// sends no requests.
//
// Replies and events overtake each other. An event that happened after a request was sent counts
// as later than the reply: the reply may or may not include it.
import { later, who } from "./format.js";
import { ends } from "./kinds.js";

const remembered = 4096; // ended leases

export class Model {
  // locks has the names with a holder or a waiter; free has the other names for which kept() is
  // true. A lock object is never changed: a new one replaces it.
  locks = new Map();
  free = new Map();
  #ended = new Map(); // "TOKEN NAME" of an ended lease: when it ended
  #kept;

  constructor(kept = () => false) { this.#kept = kept; }

  get(name) { return this.locks.get(name) ?? this.free.get(name); }

  get remembers() { return this.#ended.size; }

  clear() {
    for (const map of [this.locks, this.free, this.#ended]) map.clear();
  }

  // heard applies an event that happened at e.at. It reports whether the state of the lock is
  // now uncertain, so that the page should request it.
  heard(e) {
    const old = this.get(e.name);
    const lock = old ? { ...old } : { ...nothing, name: e.name, mode: e.mode, limit: e.limit ?? 0, seen: e.at };
    const doubt = ends.includes(e.event) ? this.end(lock, e) : steps[e.event]?.call(this, lock, e, old);
    if (doubt === undefined) return false;
    this.#put(lock);
    return doubt;
  }

  // seen applies a lock from the reply that arrived at now to a request sent at sent. It reports
  // whether the reply may lack an event of the queue, so that the page should request it again.
  seen(raw, sent, now) {
    const old = this.get(raw.name);
    const lock = lockFrom(raw, old, now, this.#kept(raw.name));
    const over = (h) => this.#ended.get(lease(raw.name, h)) >= sent;
    lock.holders = lock.holders.filter((h) => h.released || !over(h));
    for (const h of old?.holders ?? []) {
      if (h.told >= sent && !lock.holders.some((one) => one.fencing_token_str === h.fencing_token_str)) lock.holders.push(h);
    }
    this.#put(lock);
    return old?.queueTold >= sent;
  }

  // listed removes the locks that are missing in a list of all names, requested at sent.
  listed(sent) {
    for (const [name, lock] of this.locks) {
      const missing = lock.seen < sent && !(lock.told >= sent);
      if (missing && !this.#kept(name)) this.locks.delete(name); // a look updates kept names
    }
  }

  // unwatched removes a free lock that no view shows any more.
  unwatched(name) { this.free.delete(name); }

  #put(lock) {
    lock.held = lock.holders.some((h) => !h.released);
    const wanted = lock.holders.length > 0 || lock.queueLength > 0;
    this.locks[wanted ? "set" : "delete"](lock.name, lock);
    this.free[!wanted && this.#kept(lock.name) ? "set" : "delete"](lock.name, lock);
  }

  begin(lock, e) {
    if (this.#ended.has(lease(e.name, e)) || !later(e.fencing_token_str, lock.lastToken)) return undefined;
    const others = e.mode === "exclusive" || e.mode !== lock.mode ? [] : lock.holders;
    lock.holders = [...others, {
      ...e.holder, permits: e.permits ?? 0, fencing_token: e.fencing_token, fencing_token_str: e.fencing_token_str,
      released: false, foreign: false, since: e.at, told: e.at,
    }];
    lock.mode = e.mode;
    lock.limit = e.limit ?? 0;
    lock.lastToken = e.fencing_token_str;
    lock.told = e.at;
    return false;
  }

  end(lock, e) {
    this.#ended.set(lease(e.name, e), e.at);
    if (this.#ended.size > remembered) this.#ended.delete(this.#ended.keys().next().value);
    lock.holders = lock.holders.filter((h) => h.fencing_token_str !== e.fencing_token_str);
    lock.told = e.at;
    return Boolean(e.holder?.labels?.["holdfast/min_hold_ms"]); // a minimum hold may keep the lock closed
  }
}

const nothing = { held: false, holders: [], queue: undefined, queueLength: 0, lastToken: "0", told: -Infinity, queueTold: -Infinity };
const lease = (name, h) => `${h.fencing_token_str} ${name}`;

// steps apply the events that do not end a lease. A step returns undefined if the lock does not
// change, and otherwise whether its state is uncertain.
const steps = {
  acquired(lock, e) { return this.begin(lock, e); },
  handed_over(lock, e) {
    const doubt = dequeue(lock, e);
    return this.begin(lock, e) ?? doubt;
  },
  queued(lock, e, old) {
    if (!isNews(lock, e)) return undefined;
    lock.queueLength++;
    lock.queue = lock.queue && [...lock.queue, { ...e.holder, mode: e.mode, permits: e.permits ?? 0, since: e.at }];
    return !old;
  },
  gave_up(lock, e) { return dequeue(lock, e); },
};

// isNews reports whether an event of the queue is as late as the last reply about the lock, or
// later. If so, it records the instant of the event in the lock.
function isNews(lock, e) {
  if (e.at < lock.seen) return false;
  lock.told = lock.queueTold = e.at;
  return true;
}

function dequeue(lock, e) {
  if (!isNews(lock, e)) return undefined;
  lock.queueLength = Math.max(0, lock.queueLength - 1);
  const at = lock.queue?.findIndex((place) => who(place) === who(e.holder)) ?? -1;
  if (at >= 0) lock.queue = lock.queue.filter((_, i) => i !== at);
  return false;
}

// lockFrom makes a lock from a reply of the server and from what was known before.
function lockFrom(raw, old, now, keep) {
  const had = new Map(old?.holders.map((h) => [h.fencing_token_str, h]));
  const kept = keep ? old : undefined; // a list has no details: keep those of the last look
  const queue = kept || old?.queue?.length === raw.queue_length ? old?.queue : undefined;
  return {
    name: raw.name, held: raw.held, mode: raw.mode, limit: raw.limit,
    holders: raw.holders.map((h) => holderFrom(h, had.get(h.fencing_token_str), now)),
    queue: raw.queue?.map((place) => placeFrom(place, old?.queue, now)) ?? queue,
    queueLength: raw.queue_length, lastToken: raw.last_token_str,
    broken: raw.broken?.map((b) => ({ ...b, at: now - b.ago_ms })) ?? kept?.broken,
    once: raw.broken ? raw.once && timed(raw.once, now) : kept?.once,
    schedule: raw.schedule,
    seen: now, told: old?.told ?? -Infinity, queueTold: old?.queueTold ?? -Infinity,
  };
}

function holderFrom(h, old, now) {
  const left = h.expires_in_ms;
  const times = timed(h, now);
  const since = steady(old?.since, times.since), expires = steady(old?.expires, times.expires);
  const ttl = h.ttl_ms ?? (left === null ? undefined : Math.max(old?.ttl ?? 0, left));
  return { ...h, since, expires, ttl, renewed: h.ttl_ms && left !== null ? expires - ttl : undefined, told: old?.told };
}

function placeFrom(place, before, now) {
  const since = now - place.waiting_ms;
  const old = before?.find((p) => Math.abs(p.since - since) < 2000 && who(p) === who(place));
  return { ...place, since: steady(old?.since, since), expires: now + place.expires_in_ms };
}

function timed(h, now) {
  return {
    ...h,
    since: h.held_ms === null || h.held_ms === undefined ? undefined : now - h.held_ms,
    expires: h.expires_in_ms === null ? null : now + h.expires_in_ms,
  };
}

// steady returns an instant that does not vary with the time that replies take.
function steady(old, now) {
  return typeof old === "number" && typeof now === "number" && Math.abs(old - now) < 250 ? Math.min(old, now) : now;
}
