// All locks of the store, as this page knows them, and how it stays current: by the events
// where the store tells of them, by lists where it does not, and by looks at what is shown.
import { signal, batch } from "./signal.js";
import { get, post, del, lines, events, Problem } from "./api.js";
import { Model } from "./model.js";
import { stopAt } from "./now.js";

const lookEvery = 1000; // ms, of the names that are shown
const lookSeldom = 30_000;
const lookSoon = 200; // after an event about one of them
const queuesEvery = 2000;
const atOnce = 128; // names in a look
const beatEvery = 2000; // without news of the store it is asked for some
const slowAfter = 3000; // then it is slow
const oldAfter = 5000; // from then on what is shown is old
const streamSilence = 35_000; // the stream of events beats every 15 s
const resync = 10_000; // foreign clients, what nobody has noticed yet
const resyncOfOne = 40; // more for each lock: a long list costs more
const poll = 2000; // without events
const listShare = 20; // a list takes one part in so many of the time
const asleepAfter = 30_000; // in a tab that is hidden: browsers have few connections
const keptEvents = 2000; // events
const knownIDs = 10_240; // a server that does not know where we were tells all it has

const watched = new Map(); // name: how many views show it
const toLookAt = new Set(); // names to look at once
const model = new Model((name) => watched.has(name));

export const locks = model.locks;
export const lockOf = (name) => model.get(name); // even if nobody has it, if it is watched
export const refused = new Map(); // names that are watched and cannot be seen: a Problem
export const recent = []; // events, the latest last

export const version = signal(0);
export const trouble = signal(null); // {of: "server" or "store", since, why}: what is shown is old
export const slow = signal(0); // ms for which an answer has been awaited that is late
export const keepsHistory = signal(undefined);
export const session = signal(undefined); // null: nobody is signed in
export const ready = signal(false);

// watch has names looked at every second, and soon after events about them, until stop.
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

// watchQueues has the queues of all names looked at for which somebody waits, until stop.
export function watchQueues() {
  queueWatchers++;
  nextLook.ring(0);
  return () => { queueWatchers--; };
}

// look looks at names at once, and returns their locks in the same order.
export async function look(names, how) {
  for (let i = 0; i < names.length; i += atOnce) await lookAt(names.slice(i, i + atOnce), how);
  return names.map((name) => model.get(name));
}

const ears = new Set();

// onEvent has f told of each event, once, until stop.
export function onEvent(f) {
  ears.add(f);
  return () => ears.delete(f);
}

// changed lets views know, at most ten times a second.
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

// --- what comes in ---

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
export const begun = new Promise((then) => { begin = then; }); // the first list was asked for, or cannot be

let revision; // of the latest list of all names, if the server knows what has changed since

// list asks for all locks, or for those that have changed. It returns for how long to wait then:
// until the list that the server makes for all pages, or for much longer than it took.
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
    else await Promise.all(names.map((name) => lookAt([name], how))); // one of them is refused: which?
  }
  news = answered = performance.now();
}

// never reports whether it is of no use to ask again.
const never = ({ status }) => status === 400 || status === 403;

function refuse(name, problem) {
  if (!watched.has(name)) return;
  refused.set(name, problem);
  changed();
}

// --- staying current ---

let last = ""; // the ID of the latest event
let identified = 0;
let answered = 0; // when the server has answered last
let news = 0; // when it has last known something of the store
let looked = 0; // when all that is shown was looked at
let queuesLooked = 0, queueWatchers = 0;
let cut = new AbortController(); // ends what follows the server, which begins anew
const nextLook = alarm(), nextList = alarm(), nextTry = alarm();

// follow follows the server for ever.
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

// current keeps the locks current until it fails.
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

// lookOn looks at what is shown, and thereby whether the server and its store still answer.
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
    if (names.size === 0 && looked - news > beatEvery) { // is the store there?
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

// due reports whether a lock is to be looked at again: some times in the time of its lease, and
// every second where no events tell of it, or where it should have been renewed.
function due(lock, at) {
  if (!lock?.queue || keepsHistory.value !== true) return true;
  const pause = ({ ttl = 0, expires, person, foreign }) => foreign || !person && expires - at < ttl / 3 ? lookEvery : ttl / 6;
  return at - lock.seen >= Math.min(lookSeldom, Math.max(lookEvery, Math.min(...lock.holders.map(pause)))) - 50;
}

// judge finds out who does not answer when there is no news: the server, or only its store.
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
  if (status === 0 && trouble.value?.of === "store" && performance.now() - answered < oldAfter) return; // it does answer
  const why = detail ?? message;
  const old = trouble.value;
  if (old?.of === of && (old.why === why || code === "no-answer")) return;
  over({ of, why, since: old?.since ?? (news || performance.now()) });
}

// over has what is shown grow old, or be current again.
function over(now) {
  trouble.value = now;
  stopAt(now && ready.value ? now.since : undefined);
}

async function identify(signal) {
  const who = await get("v1/session", {}, { signal });
  answered = identified = performance.now();
  if (JSON.stringify(who) !== JSON.stringify(session.value)) session.value = who;
}

// signIn shows a token to the server, which keeps it in a cookie that no script can read.
export async function signIn(token) {
  await post("v1/session", { token });
  nextTry.ring(0);
}

export async function signOut() {
  await del("v1/session");
  cut.abort(new Problem(401, "signed-out", ""));
}

// signedOff forgets all that was shown: the next one may be allowed less.
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

const forEver = 2 ** 31 - 1; // ms, as long as a timer can be

// alarm makes something that one waits for, and others ring before its time.
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
