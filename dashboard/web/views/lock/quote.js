// Texts quoted for a shell and for Go, and commands made of them.
import { named } from "../../api.js";

// sh quotes a text for POSIX shells. A text that is safe in all of them stays as it is.
export function sh(text) {
  return /^[\w./:,@+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

// golang quotes a text as a literal of Go. It escapes characters that are invisible, or that change
// the direction of text.
export function golang(text) {
  return `"${text.replace(/["\\]|[\p{C}\p{Zl}\p{Zp}]/gu, c => {
    if (c === '"' || c === "\\") return "\\" + c;
    const n = c.codePointAt(0).toString(16);
    if (/^d[89a-f]..$/.test(n)) return "\\ufffd"; // half of a surrogate pair, which UTF-8 cannot encode
    return n.length > 4 ? "\\U" + n.padStart(8, "0") : "\\u" + n.padStart(4, "0");
  })}"`;
}

// commandsOf returns commands that do something to a lock: {cli, curl, go}. what is look, history,
// take or break. server is {url, known}: if known, the server requires a token, which is in $TOKEN.
export function commandsOf(what, lock, server, { token, key } = {}) {
  const { name } = lock;
  const [scheme, host] = server.url.split("://");
  const store = server.known ? `${scheme}://:"$TOKEN"@${sh(host)}` : sh(server.url);
  const ask = (path, json) => ["curl",
    ...server.known ? [`-H "Authorization: Bearer $TOKEN"`] : [],
    ...key && what === "take" ? [`-H ${sh("Idempotency-Key: " + key)}`] : [],
    ...json ? ["--json", sh(json)] : [], sh(`${server.url}/${path}`)].join(" ");
  const path = (more) => named("v1/locks", name, more);
  switch (what) {
    case "look": return {
      cli: `holdfast show --store ${store} -- ${sh(name)}`,
      curl: ask(path()),
      go: `lock, err := client.Inspect(ctx, ${golang(name)})`,
    };
    case "history": return {
      cli: `holdfast history --store ${store} -- ${sh(name)}`,
      curl: ask(path("history")),
      go: `events, err := client.History(ctx, ${golang(name)})`,
    };
    case "break": return {
      cli: `holdfast break --store ${store} --token ${token} --reason WHY -- ${sh(name)}`,
      curl: ask(path("break"), `{"fencing_token": ${token}, "reason": "WHY"}`),
      go: `broken, err := client.Break(ctx, ${golang(name)}, &holdfast.BreakOptions{Token: ${token}, Reason: "WHY"})`,
    };
  }
  const { flag, json, opts } = modeWords(lock);
  return {
    cli: `holdfast run --store ${store} ${flag}-N ${sh(name)} -- COMMAND`,
    curl: ask("v1/leases", `{"name": ${JSON.stringify(name)}${json}}`),
    go: `err := client.Do(ctx, ${golang(name)}, ${opts}, func(ctx context.Context, lease *holdfast.Lease) error {\n\treturn nil // the work\n})`,
  };
}

// modeWords returns the words that request a lock of this mode.
function modeWords({ mode, limit }) {
  switch (mode) {
    case "shared": return { flag: "-s ", json: `, "mode": "shared"`, opts: "&holdfast.AcquireOptions{Mode: holdfast.Shared}" };
    case "semaphore": return {
      flag: `--slots ${limit} `, json: `, "mode": "semaphore", "limit": ${limit}`,
      opts: `&holdfast.AcquireOptions{Mode: holdfast.Permits(1, ${limit})}`,
    };
  }
  return { flag: "", json: "", opts: "nil" };
}
