// What stands around the views: the state of the connection, notices, the way in.
import { html, signal, useEffect, useRef, useSignal } from "./lib.js";
import { session, stale, history, ready, signIn, signOut, onEvent } from "./fleet.js";
import { Text, useTick } from "./parts.js";
import { clock, plain, who, whole } from "./format.js";

// Status says in words whether what is shown is current, and as whom one looks.
export function Status() {
  const one = session.value;
  return html`<div class="state">
    <${Connection} />
    ${one && html`<span class="caller" title=${one.actions.length ? "You may: " + one.actions.join(", ") : "You can look, and change nothing."}>
      ${one.caller && html`<${Text} value=${one.caller} />, `}${one.actions.length ? "may act" : "read-only"}</span>`}
    ${one?.signed_in && html`<button type="button" class="plain" onClick=${() => signOut().catch(() => {})}>Sign out</button>`}
    <${Theme} />
  </div>`;
}

function Connection() {
  useTick(1000);
  const lost = stale.value;
  const [sign, word, title] = session.value === null ? ["off", "signed out", ""]
    : lost ? ["stale", "stale", plain(lost.why)]
    : !ready.value ? ["wait", "connecting", ""]
    : history.value ? ["live", "live", "Events arrive as they happen."]
    : ["poll", "every 2 s", "The store keeps no history: the page looks again and again."];
  return html`<span class=${"connection " + sign} title=${title}>${word}</span>`;
}

// Notices say what one has to know about all that is shown.
export function Notices() {
  const one = session.value;
  return html`<div class="notices">
    <div role="status">${stale.value && html`<${Stale} />`}</div>
    ${one?.notice && html`<p class="notice demo"><${Text} value=${one.notice} /></p>`}
    ${ready.value && history.value === false && html`<p class="notice quiet">This store keeps no history, so there are no events, timelines or
      rates. Open it with <code>history=1</code> in its URL, here and in every program that uses it.</p>`}
  </div>`;
}

function Stale() {
  useTick(1000);
  const { since, why } = stale.value;
  return html`<p class="notice bad"><strong>${ready.value ? "Stale" : "Not connected"}</strong>: ${plain(why)}.
    ${ready.value && html` What you see is as of <span title=${clock(since)}>${whole(performance.now() - since)} ago</span>.`}
    ${" "}The page tries again by itself.</p>`;
}

// SignIn asks for a token, and leaves the address as it is.
export function SignIn() {
  const problem = useSignal("");
  const busy = useSignal(false);
  const input = useRef(null);
  useEffect(() => { input.current.focus(); }, []);
  const submit = async (event) => {
    event.preventDefault();
    const field = input.current;
    busy.value = true;
    try {
      await signIn(field.value.trim());
      field.value = "";
    } catch (error) {
      problem.value = error.status === 401 ? "The server does not know this token." : error.message;
      field.select();
    }
    busy.value = false;
  };
  return html`<form class="card signin" onSubmit=${submit}>
    <h1>Sign in</h1>
    <p>This server asks who looks. Paste the token that you were given.</p>
    <label>Token <input ref=${input} name="token" type="password" autocomplete="current-password" required spellcheck="false" /></label>
    <p class="bad" role="alert">${problem}</p>
    <button disabled=${busy}>Sign in</button>
  </form>`;
}

const lossWords = { expired: "ran out", lost: "was lost", broken: "was broken" };
const told = signal("");

// Losses tells screen readers of leases that were lost: every two seconds, not one by one.
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
  return html`<div class="unseen" role="log" aria-live="polite" aria-label="Losses">${told}</div>`;
}

const themes = ["auto", "light", "dark"];
const theme = signal(keptTheme());

// Theme switches between light and dark; auto is what the system has.
function Theme() {
  useEffect(() => { document.documentElement.dataset.theme = theme.value; }, [theme.value]);
  const next = themes[(themes.indexOf(theme.value) + 1) % themes.length];
  return html`<button type="button" class="plain theme" aria-label=${`Theme: ${theme.value}. Switch to ${next}`} title=${`Theme: ${theme.value}`}
    onClick=${() => { theme.value = next; keepTheme(next); }}>${{ auto: "◐", light: "☀", dark: "☾" }[theme.value]}</button>`;
}

// A browser may refuse to keep anything.
function keptTheme() {
  try {
    const one = localStorage.getItem("holdfast-theme");
    return themes.includes(one) ? one : "auto";
  } catch {
    return "auto";
  }
}

function keepTheme(one) {
  try {
    localStorage.setItem("holdfast-theme", one);
  } catch { /* it lasts as long as the page */ }
}
