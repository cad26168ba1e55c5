// All locks of the store, as this page knows them. The page stays current by lists of all locks, by
// events if the store has them, and by looks: requests for the locks that are shown.
import { signal, batch } from "./signal.js";
import { get, post, del, lines, events, Problem } from "./api.js";
import { Model } from "./model.js";
import { stopAt } from "./now.js";

const lookEvery = 1000; // ms between looks at the shown names
const lookSeldom = 30_000;
const lookSoon = 200; // ms from an event about a shown name to a look
const queuesEvery = 2000;
const atOnce = 128; // names in a look
const beatEvery = 2000; // ms without news of the store until the page requests some
const slowAfter = 3000; // ms without news until the server counts as slow
const oldAfter = 5000; // ms without news until the shown state counts as old
const streamSilence = 35_000; // ms; the stream of events has a heartbeat every 15 s
const resync = 10_000; // ms between lists, for foreign clients and expiries without an event
const resyncOfOne = 40; // ms for each lock, if that is longer: a long list costs more
const poll = 2000; // ms between lists without events
const listShare = 20; // the pause after a list is at least so many times as long as the list took
const asleepAfter = 30_000; // ms in a hidden tab: then it disconnects; browsers have few connections
const keptEvents = 2000;
const knownIDs = 10_240; // a server that does not know the last ID sends all its events

const watched = new Map(); // name: how many views show it
const toLookAt = new Set(); // names for the next look
const model = new Model((name) => watched.has(name));

export const locks = model.locks;
export const lockOf = (name) => model.get(name); // a free lock only if it is watched
export const refused = new Map(); // watched name that the server refuses: a Problem
export const recent = []; // events, the latest last

export const version = signal(0);
export const trouble = signal(null); // {of: "server" or "store", since, why}: the shown state is old
export const slow = signal(0); // ms without news if the server is slow, otherwise 0
export const keepsHistory = signal(undefined);
export const session = signal(undefined); // null: not signed in
export const ready = signal(false);

// watch requests names regularly, and soon after events about them, until the returned function is
// called.
export function watch(names) {
  const all = [...names];
  for (const name of all) {
    watched.set(name, (watched.get(name) ?? 0) + 1);
    if (!model.get(name)?.queue) toLookAt.add(name);
  }
  nextLook.ring(0);
  return () => {
    for (const name of all) {
      const n = watched.get(name) - 1;
      if (n > 0) watched.set(name, n);
      else {
        watched.delete(name);
        refused.delete(name);
        model.unwatched(name);
      }
    }
  };
}

// watchQueues requests all names with a queue every two seconds, until the returned function is
// called.
export function watchQueues() {
  queueWatchers++;
  nextLook.ring(0);
  return () => { queueWatchers--; };
}

// look requests names now, and returns their locks in the same order.
export async function look(names, how) {
  for (let i = 0; i < names.length; i += atOnce) await lookAt(names.slice(i, i + atOnce), how);
  return names.map((name) => model.get(name));
}

const ears = new Set();

// onEvent calls f with each event, once, until the returned function is called.
export function onEvent(f) {
  ears.add(f);
  return () => ears.delete(f);
}

// changed makes the views draw again, at most ten times a second.
let bumped = 0, bumping;
function changed() {
  if (bumping) return;
  const wait = Math.max(0, bumped + 100 - performance.now());
  bumping = setTimeout(() => {
    bumped = performance.now();
    bumping = undefined;
    version.value++;
  }, wait);
}

// --- events and replies ---

const ids = new Set();

function heard(e, id) {
  news = answered = performance.now();
  const at = news - (e.ago_ms ?? 0);
  if (id) {
    if (ids.has(id)) return;
    ids.add(id);
    if (ids.size > knownIDs) ids.delete(ids.values().next().value);
    last = id;
  }
  const event = { ...e, at };
  if (e.event === "gap") nextList.ring(0);
  else if (model.heard(event) || watched.has(e.name)) toLookAt.add(e.name);
  if (toLookAt.size > 0) nextLook.ring(lookSoon);
  recent.push(event);
  if (recent.length > keptEvents + 500) recent.splice(0, recent.length - keptEvents);
  for (const f of ears) f(event);
  changed();
}

function seen(raw, sent) {
  const now = news = answered = performance.now();
  if (model.seen(raw, sent, now)) toLookAt.add(raw.name);
  changed();
}

let begin;
export const begun = new Promise((then) => { begin = then; }); // the first list was requested, or cannot be

let revision; // of the latest list of all names, if the server can list the changes since

// list requests all locks, or those that have changed. It returns the time to wait before the next
// list: until the server makes its next list for all pages, or many times as long as this one took.
async function list(how) {
  const sent = performance.now();
  begin();
  const ask = (params) => lines("v1/locks", params, (raw) => seen(raw, sent), { ...how, time: 60_000 });
  let changes = false, next = null;
  if (session.value.prefixes) for (const prefix of session.value.prefixes) await ask({ prefix });
  else {
    const headers = await ask({ since: revision ?? "none" });
    changes = headers.has("Holdfast-Since");
    revision = headers.get("Holdfast-Revision") ?? undefined;
    next = headers.get("Holdfast-Next-Ms");
  }
  if (!changes) model.listed(sent);
  news = answered = performance.now();
  changed();
  const least = keepsHistory.value ? Math.max(resync, resyncOfOne * locks.size) : poll;
  return next ? Number(next) : Math.max(least, listShare * (answered - sent));
}

async function lookAt(names, how) {
  const sent = performance.now();
  try {
    const answer = await post("v1/locks/look", { names }, undefined, how);
    for (const raw of answer.locks) {
      refused.delete(raw.name);
      seen(raw, sent);
    }
    for (const { name, status, code, detail } of answer.failed) refuse(name, new Problem(status, code, detail));
  } catch (problem) {
    if (!never(problem)) throw problem;
    if (names.length === 1) refuse(names[0], problem);
    else await Promise.all(names.map((name) => lookAt([name], how))); // one name is refused: find out which
  }
  news = answered = performance.now();
}

// never reports whether it is useless to repeat a request.
const never = ({ status }) => status === 400 || status === 403;

function refuse(name, problem) {
  if (!watched.has(name)) return;
  refused.set(name, problem);
  changed();
}

// --- staying current ---

let last = ""; // the ID of the latest event
let identified = 0;
let answered = 0; // when the server last answered
let news = 0; // when the server last answered with something about the store
let looked = 0; // when the shown names were last requested
let queuesLooked = 0, queueWatchers = 0;
let cut = new AbortController(); // aborts the requests that follow the server; follow then begins again
const nextLook = alarm(), nextList = alarm(), nextTry = alarm();

// follow keeps the page connected to the server, for ever.
export async function follow() {
  lookOn();
  setInterval(judge, 250);
  for (;;) {
    const { signal } = cut = new AbortController();
    signal.addEventListener("abort", () => nextList.ring(0));
    let why;
    try {
      await identify(signal);
      await current(signal);
    } catch (problem) {
      why = signal.aborted ? signal.reason : problem;
    }
    cut.abort();
    failed(why);
    const idle = session.value === null || why === hidden && document.hidden;
    await nextTry.wait(idle ? forEver : why.status >= 400 && why.status < 500 ? 5000 : 500 + 500 * Math.random());
  }
}

// current keeps the locks current until a request fails or cut is aborted.
async function current(signal) {
  const read = session.value.history && await events(last, { signal });
  keepsHistory.value = session.value.history;
  let beat = performance.now();
  const ended = () => cutOff("ended", "the server has ended the connection");
  if (read) read(heard, () => { beat = performance.now(); }).then(ended, (problem) => cut.signal === signal && cut.abort(problem));
  for (;;) {
    const pause = await list({ signal });
    batch(() => { ready.value = true; over(null); version.value++; });
    nextLook.ring(0);
    await nextList.wait(pause);
    signal.throwIfAborted();
    if (read && performance.now() - beat > streamSilence) cutOff("silent", "the stream of events is silent");
  }
}

const cutOff = (code, why) => cut.abort(new Problem(0, code, why));

// lookOn requests the shown names again and again, and so finds out whether the server and its
// store still answer.
async function lookOn() {
  for (;;) {
    await nextLook.wait(Math.max(lookSoon, looked + lookEvery - performance.now()));
    const { signal } = cut;
    if (!ready.value || signal.aborted) continue;
    try {
      await lookNow(signal);
      if (trouble.value) nextList.ring(0);
    } catch (problem) {
      if (!signal.aborted) cut.abort(problem);
    }
  }
}

async function lookNow(signal) {
  const names = new Set(toLookAt);
  toLookAt.clear();
  if (performance.now() - looked >= lookEvery) {
    looked = performance.now();
    for (const name of watched.keys()) if (due(model.get(name), looked)) names.add(name);
    if (names.size === 0 && looked - news > beatEvery) { // does the store answer?
      for (const name of locks.keys()) { names.add(name); break; }
      if (names.size === 0 || looked - identified > resync) await identify(signal);
    }
  }
  if (queueWatchers > 0 && performance.now() - queuesLooked >= queuesEvery) {
    queuesLooked = performance.now();
    for (const lock of locks.values()) if (lock.queueLength > 0) names.add(lock.name);
  }
  for (const [name, problem] of refused) {
    if (never(problem)) names.delete(name);
  }
  await look([...names], { signal });
}

// due reports whether a watched lock is to be requested again: after a sixth of its shortest TTL,
// within 1 s to 30 s, but every second if there are no events about it, or if a renewal is late.
function due(lock, at) {
  if (!lock?.queue || keepsHistory.value !== true) return true;
  const pause = ({ ttl = 0, expires, person, foreign }) => foreign || !person && expires - at < ttl / 3 ? lookEvery : ttl / 6;
  return at - lock.seen >= Math.min(lookSeldom, Math.max(lookEvery, Math.min(...lock.holders.map(pause)))) - 50;
}

// judge finds out, if there is no news, whether the server does not answer or only its store.
let probing = false;
async function judge() {
  if (!ready.value || document.hidden) return;
  const quiet = performance.now() - news;
  slow.value = quiet > slowAfter && !trouble.value ? quiet : 0;
  if (quiet > oldAfter) {
    const server = performance.now() - answered > oldAfter;
    failed(new Problem(server ? 0 : 503, "no-answer", server ? "no answer from the server" : "no answer from the store"));
  }
  if (quiet < slowAfter || probing) return;
  probing = true;
  await identify(AbortSignal.timeout(oldAfter)).catch(() => {});
  setTimeout(() => { probing = false; }, 1000);
}

function failed({ status, code, detail, message }) {
  begin();
  if (status === 401) return signedOff();
  const of = status === 503 && (code === "store-unavailable" || code === "no-answer") ? "store" : "server";
  if (status === 0 && trouble.value?.of === "store" && performance.now() - answered < oldAfter) return; // the server does answer
  const why = detail ?? message;
  const old = trouble.value;
  if (old?.of === of && (old.why === why || code === "no-answer")) return;
  over({ of, why, since: old?.since ?? (news || performance.now()) });
}

// over sets or clears trouble. While there is trouble, the time of the views stands still.
function over(now) {
  trouble.value = now;
  stopAt(now && ready.value ? now.since : undefined);
}

async function identify(signal) {
  const who = await get("v1/session", {}, { signal });
  answered = identified = performance.now();
  if (JSON.stringify(who) !== JSON.stringify(session.value)) session.value = who;
}

// signIn sends a token to the server, which sets a cookie that no script can read.
export async function signIn(token) {
  await post("v1/session", { token });
  nextTry.ring(0);
}

export async function signOut() {
  await del("v1/session");
  cut.abort(new Problem(401, "signed-out", ""));
}

// signedOff deletes all that was shown: the next user may have fewer rights.
function signedOff() {
  model.clear();
  ids.clear();
  recent.length = 0;
  last = "";
  revision = undefined;
  batch(() => {
    session.value = null;
    ready.value = false;
    over(null);
    version.value++;
  });
}

// --- time ---

const forEver = 2 ** 31 - 1; // ms, the longest time of a timer

// alarm returns a timer: wait waits until it ends, and ring makes it end in ms at the latest.
function alarm() {
  let go, timer, at, hurry;
  const set = (ms) => {
    at = performance.now() + ms;
    clearTimeout(timer);
    timer = setTimeout(() => { const f = go; go = undefined; f?.(); }, ms);
  };
  return {
    wait: (ms) => new Promise((then) => {
      go = then;
      set(Math.min(ms, hurry ?? ms));
      hurry = undefined;
    }),
    ring(ms) {
      if (!go) hurry = Math.min(ms, hurry ?? ms);
      else if (at > performance.now() + ms) set(ms);
    },
  };
}

const hidden = new Error("the page was hidden");
let tired;
document.addEventListener("visibilitychange", () => {
  clearTimeout(tired);
  if (document.hidden) tired = setTimeout(() => cut.abort(hidden), asleepAfter);
  else nextTry.ring(0);
});
