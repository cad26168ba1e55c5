// What one may do to a lock: buttons, and the dialog that asks before anything is done. A dialog
// is about the one lease that was shown, by its token, and is one action however often it is sent.
import { html, render, signal, useEffect, useRef, useState } from "./lib.js";
import { del, named, newKey, post } from "./api.js";
import { lockOf, look, session, version, watch } from "./fleet.js";
import { Dialog, Text } from "./parts.js";
import { plain, who } from "./format.js";

// may reports whether whoever looks may do this, to a name.
export function may(action, name = "") {
  const one = session.value;
  return Boolean(one?.actions.includes(action)) && (one.prefixes ?? [""]).some((p) => name.startsWith(p));
}

// Actions has the buttons of a holder, or without one, of a lock that is to be had.
export function Actions({ lock, holder }) {
  const { name } = lock;
  if (!holder) return free(lock) && html`<${Ask} kind="hold" lock=${lock} />`;
  if (holder.foreign) return null; // its lease has no token
  return html`<span class="actions">
    ${holder.person && !holder.released && html`<${Ask} kind="release" lock=${lock} holder=${holder} />`}
    <${Ask} kind=${holder.released ? "open" : "break"} lock=${lock} holder=${holder} /></span>`;
}

// after is called when it is done.
export const ForgetButton = ({ name, after }) => html`<${Ask} kind="forget" lock=${{ name }} after=${after} />`;

// ReadOnly says so where there are no buttons.
export function ReadOnly({ name }) {
  const one = session.value;
  if (!one || Object.keys(kinds).some((kind) => may(kinds[kind].right ?? kind, name))) return null;
  return html`<p class="quiet">Read-only: ${one.caller && html`as <${Text} value=${one.caller} /> `}you may look, and not break, hold,
    release or forget anything here. Whoever runs this page decides that.</p>`;
}

// free reports whether a person can have the lock, or a permit of it, now.
function free({ mode, limit, holders, queueLength }) {
  if (mode !== "semaphore") return holders.length === 0;
  return queueLength === 0 && holders.reduce((n, h) => n + (h.permits || 1), 0) < limit;
}

const kinds = {
  break: {
    word: "Break", title: "Take the lock away", typed: true, needs: true, done: "was taken away",
    says: "Whoever waits first has it at once. The process that has it now stops as soon as it hears of this: until then two may be at work.",
    send: (ask, { reason }) => post(at(ask, "break"), { ...tokenOf(ask), reason }, ask.key),
  },
  open: {
    word: "Open", right: "break", title: "Open a name that is kept closed", typed: true, needs: true, done: "was opened",
    says: "Its last holder is done, and had asked that nobody has it again so soon.",
    send: (ask, { reason }) => post(at(ask, "break"), { ...tokenOf(ask), closed: true, reason }, ask.key),
  },
  release: {
    word: "Release", title: "Give a person's lock back", done: "was given back", optional: true,
    says: "Whoever waits first has it at once.",
    send: (ask, { reason }) => post(at(ask, "hold/release"), { ...tokenOf(ask), ...reason && { reason } }, ask.key),
  },
  hold: {
    word: "Hold", title: "Hold the lock yourself", needs: true, time: true, done: "is yours",
    says: "No process has it then, and nobody else, until the time is over or you give it back.",
    send: (ask, { reason, time, unit }) => post(at(ask, "hold"), {
      for_ms: Math.round(time * unit), reason, ...ask.lock.limit > 0 && { mode: ask.lock.mode, limit: ask.lock.limit },
    }, ask.key),
  },
  forget: {
    word: "Forget", title: "Forget a result", typed: true, done: "is forgotten",
    says: "Whoever asks for this work next does it again.",
    send: ({ lock }) => del(named("v1/once", lock.name)),
  },
};

const at = ({ lock }, what) => named("v1/locks", lock.name, what);
const tokenOf = ({ holder }) => ({ fencing_token: BigInt(holder.fencing_token_str) });

// Ask is a button that opens a dialog.
function Ask({ kind, lock, holder, after }) {
  if (!may(kinds[kind].right ?? kind, lock.name)) return null;
  const { word, title } = kinds[kind];
  return html`<button type="button" class=${"act " + kind} onClick=${() => open({ kind, lock, holder, after })}
    aria-label=${`${word}: ${plain(holder ? who(holder) : lock.name)}`} title=${title}>${word}…</button>`;
}

// The dialog stands beside the page: what it is about may go away while it is open.
const asked = signal(null), said = signal("");
let beside;

function open(ask) {
  if (!beside) {
    beside = document.body.appendChild(document.createElement("div"));
    render(html`<${Beside} />`, beside);
  }
  said.value = "";
  asked.value = { ...ask, key: newKey() };
}

const Beside = () => html`${asked.value && html`<${Question} ask=${asked.value} key=${asked.value} />`}
  <div class="said" role="status">${said.value}</div>`;

function Question({ ask }) {
  version.value; // the lock may change
  const { kind, lock: { name }, holder } = ask;
  const { word, title, says, typed, needs, optional, time, done, send } = kinds[kind];
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(null);
  const form = useRef(null);
  useEffect(() => {
    form.current.querySelector("input, button").focus(); // and not the sign that closes it
    return watch([name]);
  }, []);
  const now = lockOf(name);
  const over = holder && !busy && now && !now.holders.some((h) => h.fencing_token_str === holder.fencing_token_str && h.released === holder.released);
  const submit = async (event) => {
    event.preventDefault();
    if (ask.sent || over) return; // a double click is one request
    const dialog = event.target.closest("dialog");
    ask.sent = true;
    setBusy(true);
    try {
      await send(ask, Object.fromEntries(new FormData(event.target)));
      said.value = html`<${Text} value=${name} /> ${done}.`;
      setTimeout(() => { said.value = ""; }, 8000);
      dialog.close();
      ask.after?.();
      toMain(); // the button is about to go
      look([name]).catch(() => {}); // the page looks again by itself
    } catch (error) {
      if (error.status >= 400 && error.status < 500) ask.key = newKey(); // nothing was done: what follows is another try
      ask.sent = false;
      setProblem(error);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${title} onClose=${closed}><form ref=${form} method="dialog" onSubmit=${submit} class="ask">
    <p class="whole"><${Text} value=${name} /></p>
    ${holder && html`<p>Held by <strong><${Text} value=${who(holder)} /></strong>, token <code>${holder.fencing_token_str}</code>
      ${holder.reason && html`: <${Text} value=${holder.reason} />`}</p>`}
    ${over ? html`<${Over} lock=${now} holder=${holder} />` : html`
      <p>${says}</p>
      ${time && html`<label>For <span><input name="time" type="number" min="0.01" step="any" required value="1" />
        <select name="unit" aria-label="unit of time"><option value="60000">minutes</option><option value="3600000" selected>hours</option><option value="86400000">days</option></select></span></label>`}
      ${(needs || optional) && html`<label>Why${optional && " (if it is somebody else's)"} <input name="reason" required=${needs} pattern=${needs && ".*\\S.*"} maxlength="1024" title="a reason, for others" autocomplete="off" /></label>`}
      ${typed && html`<label>Type the name again <input required autocomplete="off" spellcheck="false" autocapitalize="off" onInput=${(e) => same(e.target, name)} /></label>`}`}
    <div role="alert">${problem && html`<p class="bad">${wordsOf(problem)}</p>`}</div>
    <p class="buttons">${!over && html`<button class="act" aria-busy=${busy} disabled=${busy}>${busy ? "Asking…" : problem?.status === 0 ? "Send it again" : word}</button>`}
      <button type="button" class="plain" onClick=${(e) => e.target.closest("dialog").close()}>${over ? "Close" : "Leave it"}</button></p>
  </form><//>`;
}

// same wants the name; a field has no line breaks.
function same(field, name) {
  field.setCustomValidity(field.value === name.replace(/[\r\n]/g, "") ? "" : "This is not the name that is shown above.");
}

function closed() {
  asked.value = null;
  setTimeout(() => { if (document.activeElement === document.body) toMain(); }); // the button is gone, with the lease
}

const toMain = () => document.getElementById("main").focus();

// Over says what has become of a lease that was to be ended.
function Over({ lock, holder }) {
  const broken = lock.broken?.find((b) => b.fencing_token_str === holder.fencing_token_str);
  const [next] = lock.holders.filter((h) => !h.released);
  return html`<p role="alert" class="bad">This lease is over${broken && html`: <${Text} value=${broken.author} /> has broken it`}. ${next
    ? html`Now <${Text} value=${who(next)} /> has the lock.` : "Nobody has the lock now."} There is nothing left to do here.</p>`;
}

// wordsOf says what a refusal means.
function wordsOf({ status, code, detail }) {
  if (status === 0) return `No answer: ${detail}. Nobody knows whether it was done. Sent again, it is done once all the same.`;
  if (code === "not-held") return "Nothing was done: this lease is over, and somebody else may have the lock by now.";
  if (code === "no-result") return "Nothing was done: there is no result under this name any more.";
  if (status === 401) return "You are not signed in any more. Nothing was done.";
  return `${status < 500 ? "Nothing was done: " : "It failed: "}${plain(detail ?? "")}`;
}
