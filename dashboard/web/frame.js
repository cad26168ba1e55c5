// The parts around the views: the state of the connection, the notices and the sign-in form.
import { html, useEffect, useRef, useState } from "./lib.js";
import { signal } from "./signal.js";
import { session, trouble, slow, keepsHistory, ready, signIn, signOut, onEvent } from "./fleet.js";
import { Text, useTick } from "./parts.js";
import { times } from "./times.js";
import { clock, hour, plain, who, whole } from "./format.js";
import { forAll, useAnswer } from "./answer.js";
import { kept } from "./kept.js";
import { search } from "./search.js";

// Status shows whether the shown state is current, and the name and the rights of the caller.
export function Status() {
  const one = session.value;
  return html`<div class="state">
    <button type="button" class="find" onClick=${search}>Search <kbd>/</kbd></button>
    <${Connection} />
    ${one && html`<span class="caller" title=${"You can look" + one.actions.map((a) => ", " + a).join("")}>${one.caller ? html`<${Text} value=${one.caller} />` : "anonymous"}${one.actions.length === 0 && " · read-only"}</span>`}
    ${one?.signed_in && html`<button type="button" class="plain" onClick=${() => signOut().catch(() => {})}>Sign out</button>`}
    <${Choice} of=${times} label="Times" words=${{ relative: "relative", local: "local", UTC: "UTC" }} />
    <${Choice} of=${theme} label="Theme" words=${{ auto: "◐ auto", light: "☀ light", dark: "☾ dark" }} />
  </div>`;
}

function Connection() {
  const lost = trouble.value, late = slow.value;
  const [sign, word, title] = session.value === null ? ["off", "signed out", ""]
    : lost ? ["down", lost.of + " down", plain(lost.why)]
    : !ready.value ? ["wait", "connecting", ""]
    : late ? ["late", `slow (${(late / 1000).toFixed(1)} s)`, "The latest answer is late."]
    : keepsHistory.value ? ["live", "live", "Events arrive as they happen."]
    : ["poll", "every 2 s", "The store keeps no history: the page looks again and again."];
  return html`<span class=${"connection " + sign} title=${title}>${word}</span>`;
}

// Notices show what concerns the whole page. A notice that comes and goes is at the bottom of the
// window, so that it moves nothing.
export function Notices() {
  const one = session.value;
  return html`<aside class="notices" aria-label="Notices">
    <div role="status">${trouble.value && html`<${Trouble} />`}</div>
    ${one?.notice && html`<p class="notice demo"><${Text} value=${one.notice} /></p>`}
    ${ready.value && keepsHistory.value === false && html`<p class="notice quiet">This store keeps no history, so there are no events, timelines or
      rates. Open it with <code>history=1</code> in its URL, here and in every program that uses it.</p>`}
  </aside>`;
}

// names are the usual names of stores, by the schemes of their URLs.
const names = { redis: "Redis", rediss: "Redis", valkey: "Valkey", postgres: "PostgreSQL", postgresql: "PostgreSQL", mysql: "MySQL", mariadb: "MariaDB", sqlite: "SQLite", file: "The directory" };

function Trouble() {
  useTick(1000);
  const { of, since, why } = trouble.value;
  const { answer } = useAnswer(of === "store" && forAll("v1/store"), {}, 2000);
  const store = names[answer?.store.split(":")[0]] ?? "The store";
  const shown = ready.value && html` What you see is as of then.`;
  return html`<p class="notice bad"><strong>✕ ${of === "store" ? store : "The server"} does not answer</strong> <span title=${clock(since)}>since ${hour(since)} (${whole(performance.now() - since)})</span>: ${plain(of === "store" && answer?.reason || why)}.${of === "store" && html` <b>The server is well.</b>`}${shown} The page keeps trying.</p>`;
}

// SignIn asks the user for a token. The address, and so the chosen view, stays the same.
export function SignIn() {
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const input = useRef(null);
  useEffect(() => { input.current.focus(); }, []);
  const submit = async (event) => {
    event.preventDefault();
    const field = input.current;
    setBusy(true);
    try {
      await signIn(field.value.trim());
      field.value = "";
    } catch (error) {
      setProblem(error.status === 401 ? "The server does not know this token." : error.message);
      field.select();
    }
    setBusy(false);
  };
  return html`<form class="card signin" onSubmit=${submit}>
    <h1>Sign in</h1>
    <p>Paste the token that you were given for this server.</p>
    <label>Token <input ref=${input} name="token" type="password" autocomplete="current-password" required spellcheck="false" /></label>
    <p class="bad" role="alert">${problem}</p>
    <button disabled=${busy}>Sign in</button>
  </form>`;
}

const lossWords = { expired: "expired", lost: "was lost", broken: "was broken" };
const told = signal("");

// Losses announces lost leases to screen readers: every two seconds, not one by one.
export function Losses() {
  useEffect(() => {
    let fresh = [];
    const stop = onEvent((e) => {
      if (lossWords[e.event] && performance.now() - e.at < 10_000) fresh.push(e);
    });
    const timer = setInterval(() => {
      if (fresh.length === 0) return;
      const [e] = fresh;
      const one = `The lease of ${plain(e.name)}, held by ${plain(who(e.holder))}, ${lossWords[e.event]}`;
      told.value = one + (fresh.length > 1 ? `, and ${fresh.length - 1} more` : "");
      fresh = [];
    }, 2000);
    return () => { stop(); clearInterval(timer); };
  }, []);
  return html`<div class="unseen" role="log" aria-live="polite" aria-label="Losses">${told.value}</div>`;
}

const theme = kept("theme", ["auto", "light", "dark"]);

// Choice is a menu for a setting of the whole page.
function Choice({ of, label, words }) {
  useEffect(() => { document.documentElement.dataset[label.toLowerCase()] = of.value; }, [of.value]);
  return html`<select aria-label=${label} title=${label} value=${of.value} onChange=${(e) => { of.value = e.target.value; }}>${
    of.values.map((one) => html`<option value=${one}>${words[one]}</option>`)}</select>`;
}
