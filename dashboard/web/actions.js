// The actions on a lock: buttons, and a dialog that asks before the action. A dialog is about the
// lease that was shown, by its token. It is one action, however often its request is sent.
import { html, useEffect, useRef, useState } from "./lib.js";
import { del, named, newKey, post } from "./api.js";
import { Dialog, say, show, shut, toMain } from "./beside.js";
import { lockOf, look, session, version, watch } from "./fleet.js";
import { Since, Text } from "./parts.js";
import { count, hour, number, plain, who } from "./format.js";

// may reports whether the caller has the right to an action on a name, or on any name.
export function may(action, name) {
  const one = session.value;
  return Boolean(one?.actions.includes(action)) && (name === undefined || (one.prefixes ?? [""]).some((p) => name.startsWith(p)));
}

// Actions shows the buttons for a holder or, without one, for the lock.
export function Actions({ lock, holder }) {
  if (!holder) return html`<${Ask} kind="hold" lock=${lock} />`;
  if (holder.foreign) return null; // its lease has no token
  const person = holder.person && !holder.released;
  return html`<span class="actions">
    <${Ask} kind=${holder.released ? "open" : "break"} lock=${lock} holder=${holder} />
    ${person && html`<${Ask} kind="extend" lock=${lock} holder=${holder} /><${Ask} kind="release" lock=${lock} holder=${holder} />`}</span>`;
}

// hold opens the dialog for holding a lock. Without a name, the user types one.
export const hold = (name) => askAbout({ kind: "hold", lock: lockOf(name) ?? { name, holders: [] } });

// ForgetButton calls after when the result is forgotten.
export const ForgetButton = ({ name, after }) => html`<${Ask} kind="forget" lock=${{ name }} after=${after} />`;

// ReadOnly shows a note if the caller may do nothing to a name.
export function ReadOnly({ name }) {
  const one = session.value;
  if (!one || Object.keys(actionKinds).some((kind) => may(actionKinds[kind].right ?? kind, name))) return null;
  return html`<p class="quiet">Read-only: ${one.caller && html`as <${Text} value=${one.caller} /> `}you can look, and not break, hold,
    release or forget anything here.</p>`;
}

const actionKinds = {
  break: {
    word: "Break", title: "Break this lock", typed: true, needs: true, red: true, done: "was broken",
    says: "The next client gets it at once. The holder stops as soon as it hears of this: until then two may be at work.",
    send: (ask, { reason }) => post(at(ask, "break"), { ...tokenOf(ask), reason }, ask.key),
  },
  open: {
    word: "Open", right: "break", title: "Open a lock that is cooling down", typed: true, needs: true, red: true, done: "was opened",
    says: "Its last holder is done, and has asked that nobody gets it again so soon.",
    send: (ask, { reason }) => post(at(ask, "break"), { ...tokenOf(ask), closed: true, reason }, ask.key),
  },
  release: {
    word: "Release", title: "Release a person's lock", done: "was released", optional: true,
    says: "The next client gets it at once.",
    send: (ask, { reason }) => post(at(ask, "hold/release"), { ...tokenOf(ask), ...reason && { reason } }, ask.key),
  },
  extend: {
    word: "Extend", right: "hold", title: "Hold it for longer", needs: true, time: true, done: "is held for longer",
    says: "The time begins now. It never ends earlier than before.",
    send: (ask, form) => post(at(ask, "hold"), { ...tokenOf(ask), for_ms: msOf(form), reason: form.reason }),
  },
  hold: {
    word: "Hold", title: "Hold a lock yourself", needs: true, time: true, done: "is held by you",
    send: (ask, form) => post(named("v1/locks", ask.lock.name || form.name, "hold"), {
      for_ms: msOf(form), reason: form.reason, ...ask.lock.limit > 0 && { mode: ask.lock.mode, limit: ask.lock.limit },
    }, ask.key),
  },
  forget: {
    word: "Forget", title: "Forget a result", typed: true, red: true, done: "is forgotten",
    says: "The next to ask for this work does it again.",
    send: ({ lock }) => del(named("v1/once", lock.name)),
  },
};

const at = ({ lock }, what) => named("v1/locks", lock.name, what);
const tokenOf = ({ holder }) => ({ fencing_token: BigInt(holder.fencing_token_str) });
const msOf = ({ time, unit }) => Math.round(time * unit);

// Ask is a button that opens the dialog of an action.
function Ask({ kind, lock, holder, after }) {
  if (!may(actionKinds[kind].right ?? kind, lock.name)) return null;
  const { word, title } = actionKinds[kind];
  return html`<button type="button" class=${"act " + kind} onClick=${() => askAbout({ kind, lock, holder, after })}
    aria-label=${`${word}: ${plain(holder ? who(holder) : lock.name)}`} title=${title}>${word}…</button>`;
}

const askAbout = (ask) => show(Question, { ask: { ...ask, key: newKey() } });

const retry = 1000; // ms between attempts, until a lock is free

function Question({ ask }) {
  version.value; // the lock may change
  const { kind, lock: { name }, holder } = ask;
  const { word, title, typed, needs, optional, time, red, done, send } = actionKinds[kind];
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(null);
  const [until, setUntil] = useState(undefined);
  const form = useRef(null);
  useEffect(() => (name ? watch([name]) : undefined), []);
  useEffect(() => () => clearTimeout(ask.again), []);
  const now = lockOf(name);
  const over = holder && !busy && now && !now.holders.some((h) => h.fencing_token_str === holder.fencing_token_str && h.released === holder.released);
  const submit = async (event) => {
    event.preventDefault();
    clearTimeout(ask.again);
    if (ask.sent || over) return; // a double click is one request
    const { current: element } = form;
    const values = Object.fromEntries(new FormData(element));
    ask.sent = true;
    setBusy(true);
    try {
      await send(ask, values);
      say(html`<${Text} value=${name || values.name} /> ${done}.`);
      element.closest("dialog").close();
      ask.after?.();
      toMain(); // the button that opened the dialog may disappear
      look([name || values.name]).catch(() => {}); // if this fails, the page looks again by itself
    } catch (error) {
      if (error.status >= 400 && error.status < 500) ask.key = newKey(); // nothing was done: the next request is a new action
      ask.sent = false;
      setProblem(error);
      setBusy(false);
      if (kind === "hold" && error.code === "lock-held") ask.again = setTimeout(() => element.requestSubmit(), retry);
    }
  };
  const timed = () => setUntil(performance.now() + msOf(Object.fromEntries(new FormData(form.current))));
  return html`<${Dialog} title=${title}><form ref=${form} method="dialog" onSubmit=${submit} onInput=${time && timed} class="ask">
    ${name ? html`<p class="whole"><${Text} value=${name} /></p>` : html`<label>Name <input name="name" required maxlength="512" autocomplete="off" spellcheck="false" autocapitalize="off" /></label>`}
    ${holder && html`<${Facts} holder=${holder} lock=${now} />`}
    ${over ? html`<${Over} lock=${now} holder=${holder} />` : html`
      <p>${kind === "hold" ? promise(until, now) : actionKinds[kind].says}</p>
      ${time && html`<label>For <span><input name="time" type="number" min="0.01" step="any" required value="1" />
        <select name="unit" aria-label="Unit"><option value="60000">minutes</option><option value="3600000" selected>hours</option><option value="86400000">days</option></select></span></label>`}
      ${(needs || optional) && html`<label>Reason${optional && " (for somebody else's lock)"} <input name="reason" required=${needs} pattern=${needs && ".*\\S.*"} maxlength="1024" title="a reason, for others" autocomplete="off" /></label>`}
      ${typed && html`<label>Type the name again <input required autocomplete="off" spellcheck="false" autocapitalize="off" onInput=${(e) => same(e.target, name)} /></label>`}`}
    <div role="alert">${problem && html`<p class="bad">${refusalWords(problem, kind)}</p>`}</div>
    <p class="buttons">${!over && html`<button class=${red ? "act danger" : "act main"} aria-busy=${busy} disabled=${busy}>${busy ? "Asking…" : problem?.status === 0 ? "Send it again" : html`${word} <${Text} value=${name ?? ""} />`}</button>`}
      <button type="button" class="plain" onClick=${shut}>${over ? "Close" : "Cancel"}</button></p>
  </form><//>`;
}

// promise describes what a hold means, and when it ends.
function promise(until, lock) {
  const end = html`Nobody else can take it until <b>${hour(until ?? performance.now() + 3_600_000)}</b>, or until you release it.`;
  return lock?.held && lock.mode === "exclusive" ? html`It is held now: this dialog asks for it every second until it is free. ${end}` : end;
}

// Facts shows the holder of a lease, and who waits for the lock.
function Facts({ holder, lock }) {
  const waiting = lock?.queueLength ?? 0, [next] = lock?.queue ?? [];
  return html`<p>Held for <${Since} at=${holder.since} /> by <strong><${Text} value=${who(holder)} /></strong>${holder.reason && html`: <${Text} value=${holder.reason} />`},
    token <code>${holder.fencing_token_str}</code>.</p>
    <p>${waiting ? html`<b>${count(waiting)} waiting</b>${next && html`, next: <${Text} value=${who(next)} />`}.` : "Nobody is waiting."}</p>`;
}

// same checks that the user typed the name. A field cannot contain line breaks.
function same(field, name) {
  field.setCustomValidity(field.value === name.replace(/[\r\n]/g, "") ? "" : "This is not the name that is shown above.");
}

// Over shows that the lease of the dialog has ended, and who holds the lock now.
function Over({ lock, holder }) {
  const broken = lock.broken?.find((b) => b.fencing_token_str === holder.fencing_token_str);
  const [next] = lock.holders.filter((h) => !h.released);
  return html`<p role="alert" class="bad">This lease has ended${broken && html`: <${Text} value=${broken.author} /> has broken it`}. ${next
    ? html`Now <${Text} value=${who(next)} /> has the lock.` : "Nobody has the lock now."} There is nothing left to do here.</p>`;
}

// refusalWords explains what a refusal means, or that there was no reply.
function refusalWords({ status, code, detail }, kind) {
  if (status === 0) return `No answer: ${detail}. It may have been done. Sent again, it is done once all the same.`;
  if (kind === "hold" && code === "lock-held") return `Not free yet: ${plain(detail)}. The page asks again every second, and those in the queue come first.`;
  if (code === "not-held") return "Nothing was done: this lease has ended, and somebody else may have the lock by now.";
  if (code === "no-result") return "Nothing was done: there is no result under this name any more.";
  if (status === 401) return "You are not signed in any more. Nothing was done.";
  return `${status < 500 ? "Nothing was done: " : "It failed: "}${plain(detail ?? "")}`;
}

// BreakAll is a button that breaks all leases of a host or a holder, with one reason.
export function BreakAll({ of, leases }) {
  const own = leases.filter(({ lock, h }) => !h.foreign && !h.released && may("break", lock.name));
  if (own.length < 2) return null;
  return html`<button type="button" class="act break" onClick=${() => show(All, { of, leases: own })}>Break all ${count(own.length)}…</button>`;
}

function All({ of, leases }) {
  const [done, setDone] = useState(null); // {broken, ended, failed}
  const submit = async (event) => {
    event.preventDefault();
    const reason = new FormData(event.target).get("reason"), sum = { broken: 0, ended: 0, failed: [] };
    setDone(sum);
    for (const { lock, h } of leases) {
      try {
        await post(at({ lock }, "break"), { ...tokenOf({ holder: h }), reason }, newKey());
        sum.broken++;
      } catch (error) {
        if (error.code === "not-held") sum.ended++;
        else sum.failed.push(`${lock.name}: ${refusalWords(error)}`);
      }
      setDone({ ...sum });
    }
    setDone({ ...sum, all: true });
  };
  return html`<${Dialog} title=${`Break ${number(leases.length, "lease")} of ${plain(of)}`}><form class="ask" onSubmit=${submit}>
    <p>These are broken, one after the other, by the tokens that were shown:</p>
    <ul class="names">${leases.map(({ lock, h }) => html`<li><b><${Text} value=${lock.name} /></b> held for <${Since} at=${h.since} />${lock.queueLength > 0 && `, ${count(lock.queueLength)} waiting`}</li>`)}</ul>
    ${!done && html`<p>A process that still runs stops as soon as it hears of this.</p>
    <label>Reason <input name="reason" required pattern=".*\\S.*" maxlength="1024" title="a reason, for others" autocomplete="off" /></label>
    <label>Type <b>${plain(of)}</b> again <input required autocomplete="off" spellcheck="false" autocapitalize="off" onInput=${(e) => same(e.target, of)} /></label>`}
    <div role="alert">${done && html`<p>${done.all ? "Done: " : ""}${count(done.broken)} of ${count(leases.length)} broken${done.ended > 0 && `, ${count(done.ended)} had ended`}.</p>${done.failed.map((text) => html`<p class="bad">${plain(text)}</p>`)}`}</div>
    <p class="buttons">${!done && html`<button class="act danger">Break all ${count(leases.length)}</button>`}
      <button type="button" class="plain" onClick=${shut}>${done ? "Close" : "Cancel"}</button></p>
  </form><//>`;
}
