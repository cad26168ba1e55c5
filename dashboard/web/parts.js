// The components that all views share.
import { html, useEffect, useState } from "./lib.js";
import { href } from "./route.js";
import { ago, clock, hour, instantOf, pieces, plain, token, who, whole } from "./format.js";
import { now } from "./now.js";
import { times } from "./times.js";
import { group } from "./waits.js";

// Text shows a text that others have written, such as a name, never as markup.
export function Text({ value, title }) {
  return html`<bdi class="text" title=${title}>${pieces(String(value ?? "")).map((p) => p.text
    ?? html`<span class="odd" title="a character that cannot be seen">${p.odd}</span>`)}</bdi>`;
}

// Name links a lock's name to its view.
export const Name = ({ name }) => html`<a class="name" href=${href("lock", { name })}><${Text} value=${name} /></a>`;

// Who shows a holder or a waiter, with a link to everything that it holds.
export function Who({ holder }) {
  const text = html`<${Text} value=${who(holder)} />`;
  const sign = holder.person && html`<span class="sign" title="a person holds it, and no process">person</span> `;
  return holder.foreign ? text : html`<a class="who" href=${href("holders", group(holder))}>${sign}${text}</a>`;
}

const timeWords = (at) => (times.value === "relative" ? [ago(at), clock(at)] : [hour(at), ago(at)]);

// When shows an instant as the user has chosen: relative to now, or by a clock.
export function When({ at }) {
  useTick(1000);
  const [text, title] = timeWords(at);
  return html`<time class="when" title=${title}>${text}</time>`;
}

// Hour shows an instant by the clock.
export function Hour({ at }) {
  times.value; // draw again when the clock changes
  return html`<time class="at" title=${clock(at)}>${hour(at)}</time>`;
}

// At shows an instant by the clock, and also relative to now if the user has chosen that.
export function At({ at }) {
  useTick(1000);
  return html`<${Hour} at=${at} />${times.value === "relative" && html` <small class="when">${ago(at)}</small>`}`;
}

// Day is At for a date and time in a text, as the server sends them.
export const Day = ({ at }) => html`<${At} at=${instantOf(at)} />`;

// Since shows how long something has lasted, and keeps counting.
export function Since({ at }) {
  useTick(1000);
  return html`<time class="when" title=${at === undefined ? "" : "since " + clock(at)}>${
    at === undefined ? "unknown" : whole(now() - at)}</time>`;
}

export const Token = ({ value }) => html`<span class="token" title=${"fencing token " + value}>${token(value)}</span>`;

// Mode shows the mode of a lock or of a waiter, unless it is exclusive.
export function Mode({ of }) {
  const [text, title] = mode(of);
  return text && html`<span class="mode" title=${title}>${text}</span>`;
}

function mode({ mode, limit, permits, holders }) {
  if (mode === "shared") return ["shared", "several holders at a time"];
  if (mode !== "semaphore") return ["", ""];
  if (!holders) return [permits > 1 ? `${permits} permits` : "", ""];
  const taken = holders.reduce((n, h) => n + (h.permits || 1), 0);
  return [`${taken} of ${limit}`, `${taken} of ${limit} permits are taken`];
}

// Columns is the head of a table.
export const Columns = ({ of }) => html`<thead><tr>${of.map((title) => html`<th scope="col">${title}</th>`)}</tr></thead>`;

// Empty shows that there is nothing, and what to do about it.
export const Empty = ({ title, children }) => html`<div class="empty"><p class="what">${title}</p><p>${children}</p></div>`;

// Failed shows what went wrong, and what to do.
export function Failed({ problem, again }) {
  return html`<div class="failed" role="alert">
    <p class="what">${plain(problem.detail ?? problem.message)}</p>
    <p>${advice(problem)} ${again && html`<button type="button" onClick=${again}>Try again</button>`}</p>
  </div>`;
}

function advice({ status, code }) {
  if (code === "unsupported") return "The store of this server cannot do this, or it was not switched on.";
  if (status === 0) return "It may have been carried out. The page goes on trying to reach the server.";
  if (status === 401) return "Sign in again.";
  if (status === 403) return "Ask an administrator of the server for the right to this name.";
  if (status === 404 || status === 410) return "It may have ended a moment ago.";
  if (status === 429) return "Wait a moment, and try again.";
  if (status === 503) return "The server is well; its store does not answer.";
  return status >= 500 ? "The log of the server says more." : "Nothing was changed.";
}

// useTick draws a component again every ms milliseconds. Components with the same ms share a timer.
export function useTick(ms) {
  const [, draw] = useState(0);
  useEffect(() => {
    const tick = ticking.get(ms) ?? startTicking(ms);
    tick.all.add(draw);
    return () => {
      tick.all.delete(draw);
      if (tick.all.size > 0) return;
      clearInterval(tick.timer);
      ticking.delete(ms);
    };
  }, [ms]);
}

const ticking = new Map();

function startTicking(ms) {
  const all = new Set();
  const timer = setInterval(() => { for (const draw of all) draw((n) => n + 1); }, ms);
  ticking.set(ms, { all, timer });
  return ticking.get(ms);
}
