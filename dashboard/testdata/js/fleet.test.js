// How the page stays current, against a server that is made up.
import test, { after } from "node:test";
import { deepEqual, equal, ok } from "node:assert/strict";

globalThis.document = { hidden: false, addEventListener() {} };

const who = { host: "h", pid: 1, user: "u", program: "p", person: false, label: "", reason: "", labels: null };
const server = {
  asked: [], next: 60_000, tokens: true, prefixes: null, locks: new Map(), away: false, streams: [], last: [],
  take(name, token) {
    this.locks.set(name, { name, held: true, mode: "exclusive", limit: 0, queue_length: 0, last_token: token, last_token_str: String(token),
      holders: [{ ...who, permits: 0, fencing_token: token, fencing_token_str: String(token), held_ms: 0, expires_in_ms: 9000, released: false, foreign: false }] });
  },
  tell(e, id) {
    this.streams.at(-1).enqueue(new TextEncoder().encode((id ? `id: ${id}\n` : "") + `data: ${JSON.stringify(e)}\n\n`));
  },
  acquired(name, token) {
    this.take(name, token);
    this.tell({ id: "e" + token, event: "acquired", name, ago_ms: 0, mode: "exclusive", fencing_token: token, fencing_token_str: String(token), holder: who }, "e" + token);
  },
};

const answer = (status, body) => new Response(body === undefined ? null : JSON.stringify(body), { status });
const refusal = (status, code) => answer(status, { status, code, detail: code });
const free = (name) => ({ name, held: false, mode: "exclusive", limit: 0, holders: [], queue_length: 0, last_token: 0, last_token_str: "0" });

function look(body) {
  const { names } = JSON.parse(body);
  if (names.includes("forbidden")) return refusal(403, "not-permitted");
  return answer(200, { failed: [], locks: names.map((name) => ({ ...(server.locks.get(name) ?? free(name)), queue: [], broken: [] })) });
}

function stream({ signal, headers }) {
  server.last.push(headers["Last-Event-ID"]);
  return new Response(new ReadableStream({ start(controller) {
    server.streams.push(controller);
    signal.addEventListener("abort", () => controller.error(signal.reason));
  } }), { status: 200 });
}

globalThis.fetch = async (url, request) => {
  const line = `${request.method} ${url}`;
  server.asked.push(line);
  if (server.away) throw new TypeError("fetch failed");
  if (line === "POST v1/session") server.tokens = true;
  if (!server.tokens) return refusal(401, "not-authenticated");
  if (line === "POST v1/session") return answer(204);
  if (line === "GET v1/session") return answer(200, { caller: "ann", history: true, actions: [], prefixes: server.prefixes });
  if (line === "GET v1/events") return stream(request);
  if (server.store) return refusal(server.store, "store-unavailable");
  if (line === "POST v1/locks/look") return look(request.body);
  const params = new URL(url, "http://x").searchParams, prefix = params.get("prefix") ?? "", changes = server.changes && params.get("since") === "r1";
  const listed = changes ? server.changes : [...server.locks.values()].filter((l) => l.name.startsWith(prefix));
  return new Response(listed.map((l) => JSON.stringify(l) + "\n").join(""), { headers: { ...params.has("since") && { "Holdfast-Revision": "r1", "Holdfast-Next-Ms": String(server.next) }, ...changes && { "Holdfast-Since": "r1" } } });
};

const fleet = await import("../web/fleet.js");
const { now } = await import("../web/now.js");
const lists = () => server.asked.filter((line) => line.startsWith("GET v1/locks")).length;

async function until(what, condition) {
  for (let i = 0; i < 500; i++) {
    if (condition()) return;
    await new Promise((go) => setTimeout(go, 10));
  }
  throw new Error("it did not come to this within 5 s: " + what);
}

after(() => setTimeout(() => process.exit(), 100)); // it would follow for ever

// The steps go on from one another: there is one page.
test("the page stays current", async (t) => {
  server.take("a", 1);
  fleet.follow();

  await t.test("it begins with a list", async () => {
    await until("ready", () => fleet.ready.value);
    deepEqual([[...fleet.locks.keys()], fleet.keepsHistory.value, fleet.session.value.caller, fleet.trouble.value], [["a"], true, "ann", null]);
  });

  await t.test("an event shows a lock without a request, and a look fills in what is left", async () => {
    const before = lists();
    server.acquired("b", 2);
    await until("b", () => fleet.locks.has("b"));
    equal(fleet.locks.get("b").holders[0].expires, undefined);
    const stop = fleet.watch(["b", "nobody's"]);
    await until("a look", () => fleet.locks.get("b").holders[0].ttl === 9000);
    await until("a name that nobody has", () => fleet.lockOf("nobody's")?.held === false);
    stop();
    deepEqual([fleet.lockOf("nobody's"), lists(), fleet.recent.length], [undefined, before, 1]);
  });

  await t.test("views are drawn ten times a second at most", async () => {
    const before = fleet.version.value, began = performance.now();
    for (let i = 10; i < 210; i++) {
      server.acquired("busy", i);
      await new Promise((go) => setTimeout(go, 2));
    }
    await until("the last", () => fleet.locks.get("busy").lastToken === "209");
    const draws = fleet.version.value - before;
    const ms = performance.now() - began;
    ok(draws >= 1 && draws <= 2 + ms / 100, `${draws} draws of 200 events in ${ms} ms`);
  });

  await t.test("an event that comes twice is told once", async () => {
    let told = 0;
    const stop = fleet.onEvent(() => told++);
    server.acquired("c", 300);
    server.acquired("c", 300);
    server.acquired("d", 301);
    await until("d", () => fleet.locks.has("d"));
    stop();
    equal(told, 2);
  });

  await t.test("after a gap it lists again", async () => {
    server.take("unheard", 400);
    server.locks.delete("c");
    server.tell({ event: "gap" });
    await until("the list", () => fleet.locks.has("unheard"));
    equal(fleet.locks.has("c"), false);
  });

  await t.test("a list of changes takes nothing else away", async () => {
    server.changes = [free("unheard")];
    server.tell({ event: "gap" });
    await until("the change", () => !fleet.locks.has("unheard"));
    ok(fleet.locks.has("a") && fleet.locks.has("d"));
    server.changes = undefined; // it knows the revision no more
    server.locks.delete("d");
    server.tell({ event: "gap" });
    await until("the list", () => !fleet.locks.has("d") && fleet.locks.has("unheard"));
  });

  await t.test("it lists again when the server makes the next list for all pages", async () => {
    server.next = 100;
    server.tell({ event: "gap" });
    const before = lists();
    await new Promise((go) => setTimeout(go, 1000));
    const often = lists() - before;
    server.next = 60_000;
    await until("the last of them", () => lists() > before + often);
    const last = lists();
    await new Promise((go) => setTimeout(go, 300));
    ok(often >= 3 && often <= 11 && lists() === last, `${often} lists in a second, then ${lists() - last}`);
  });

  await t.test("one name that may not be seen does not hide the others", async () => {
    const stop = fleet.watch(["a", "forbidden"]);
    await until("a", () => fleet.locks.get("a").queue);
    await until("the refusal", () => fleet.refused.get("forbidden")?.status === 403);
    equal(fleet.trouble.value, null);
    stop();
    equal(fleet.refused.size, 0);
  });

  await t.test("after a stream has ended the page goes on behind the last event", async () => {
    server.away = true;
    server.streams.at(-1).close();
    await until("the server is away", () => fleet.trouble.value?.of === "server" && fleet.trouble.value.why);
    server.take("meanwhile", 500);
    server.away = false;
    await until("current", () => !fleet.trouble.value && fleet.locks.has("meanwhile"));
    equal(server.last.at(-1), "e301");
  });

  await t.test("a look that fails is noticed, though the stream is open", async () => {
    server.away = true;
    await until("the server is away", () => fleet.trouble.value?.of === "server");
    server.away = false;
    await until("current", () => !fleet.trouble.value);
  });

  await t.test("a store that does not answer is told from a server that does not, and the time stands still", async () => {
    server.store = 503;
    await until("the store is away", () => fleet.trouble.value?.of === "store");
    const at = now();
    equal(at, fleet.trouble.value.since);
    await new Promise((go) => setTimeout(go, 1200)); // the session answers meanwhile
    deepEqual([fleet.trouble.value.of, now()], ["store", at]);
    server.store = undefined;
    await until("current", () => !fleet.trouble.value);
    ok(now() > at);
  });

  await t.test("whose session ends sees nothing of it any more, and comes back", async () => {
    server.tokens = false;
    await until("signed out", () => fleet.session.value === null);
    deepEqual([fleet.locks.size, fleet.recent.length, fleet.ready.value], [0, 0, false]);
    server.prefixes = ["a", "b"];
    await fleet.signIn("token");
    await until("back", () => fleet.ready.value);
    deepEqual([...fleet.locks.keys()].sort(), ["a", "b", "busy"]);
    equal(server.last.at(-1), undefined, "what happened before is not for this one");
  });
});
