// The requests of the page to the server. Their URLs are relative, so that any prefix works.

// A Problem is the refusal of a request, or the lack of a reply. Without a reply the status is 0,
// and the request may or may not have been carried out.
export class Problem extends Error {
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
    this.detail = detail;
  }
}

const patience = 20_000; // ms; a server takes 15 s at most

export const get = (path, params, how) => json("GET", path, { params, ...how });
export const post = (path, body, key, how) => json("POST", path, { body, key, ...how });
export const del = (path, how) => json("DELETE", path, how);

// named returns the path for a name. The name is in the query, because some proxies decode a path
// and so change its meaning.
export const named = (path, name, more = "") => `${path}/~${more && "/" + more}?name=${encodeURIComponent(name)}`;

// lines calls each() with every object of a list, which may be long, as they arrive. It returns the
// headers of the response.
export async function lines(path, params, each, how) {
  const response = await send("GET", path, { params, accept: "application/x-ndjson", ...how });
  await readLines(response, (line) => line && each(JSON.parse(line)), how?.signal);
  return response.headers;
}

// events opens the stream of events after the one with the ID last. It returns a function that
// reads the stream to its end, and calls alive for every line, even an empty one. An EventSource
// would hide the reason of a refusal, and the heartbeats.
export async function events(last, how) {
  const headers = last ? { "Last-Event-ID": last } : {};
  const response = await send("GET", "v1/events", { accept: "text/event-stream", headers, time: 0, ...how });
  return (each, alive) => {
    let id, data;
    return readLines(response, (line) => {
      alive();
      if (line.startsWith("id: ")) id = line.slice(4);
      else if (line.startsWith("data: ")) data = line.slice(6);
      else if (line === "" && data) {
        each(JSON.parse(data), id);
        id = data = undefined;
      }
    }, how?.signal);
  };
}

// newKey returns a random Idempotency-Key. Repeat a request with the key of the first attempt.
export function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (n) => n.toString(16).padStart(2, "0")).join("");
}

async function json(method, path, how) {
  const response = await send(method, path, how);
  try {
    return response.status === 204 ? null : await response.json();
  } catch (error) {
    throw lost(error, how?.signal);
  }
}

async function send(method, path, { params, body, key, accept = "application/json", headers, signal, time = patience } = {}) {
  const signals = [signal, time && AbortSignal.timeout(time)].filter(Boolean);
  const request = { method, headers: { Accept: accept, ...headers }, signal: AbortSignal.any(signals) };
  if (body !== undefined) {
    request.headers["Content-Type"] = "application/json";
    request.body = JSON.stringify(body, exact);
  }
  if (key) request.headers["Idempotency-Key"] = key;
  const query = new URLSearchParams(Object.entries(params ?? {}).filter(([, value]) => value !== undefined && value !== "")).toString();
  let response;
  try {
    response = await fetch(path + (query && (path.includes("?") ? "&" : "?") + query), request);
  } catch (error) {
    throw lost(error, signal);
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

// exact writes a BigInt, such as a fencing token, with all its digits.
function exact(_, value) {
  if (typeof value !== "bigint") return value;
  return JSON.rawJSON ? JSON.rawJSON(String(value)) : Number(value);
}

function lost(error, signal) {
  if (signal?.aborted) return signal.reason; // the page itself has cancelled the request
  if (error.name === "TimeoutError") return new Problem(0, "no-answer", "the server has not answered in time");
  return new Problem(0, "no-answer", "the server cannot be reached");
}

async function refusal(response) {
  const { status } = response;
  const text = await response.text().catch(() => "");
  try {
    const { code, detail, title } = JSON.parse(text);
    return new Problem(status, code ?? "", detail ?? title);
  } catch {
    return new Problem(status, "", `the answer has status ${status}, and does not come from a holdfast server`);
  }
}

// readLines calls each() with every line of a response. It pauses often, so that the page reacts.
async function readLines(response, each, signal) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let began = performance.now();
  for (;;) {
    const { value, done } = await reader.read().catch((error) => { throw lost(error, signal); });
    if (done) break;
    const all = (rest + value).split("\n");
    rest = all.pop();
    for (const line of all) {
      each(line);
      if (performance.now() - began > 12) {
        await breathe();
        began = performance.now();
      }
    }
  }
  if (rest) each(rest);
}

const breathe = () => globalThis.scheduler?.yield?.() ?? new Promise((go) => setTimeout(go));
