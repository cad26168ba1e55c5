// Numbers, times and holders in words. Instants are on the scale of performance.now(), so that
// only instantOf compares the browser's clock with another one.
import { now } from "./now.js";

// duration formats a time in its two largest units: "3 m 12 s".
export function duration(ms) {
  if (ms === undefined || ms === null) return "unknown";
  if (!(ms > 0)) return "0 s";
  if (ms < 1000) return `${Math.max(1, Math.floor(ms))} ms`;
  const s = Math.floor(ms / 1000);
  if (s < 10) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  if (s < 60) return `${s} s`;
  if (s < 3600) return pair(s, 60, "m", 1, "s");
  if (s < 86_400) return pair(s, 3600, "h", 60, "m");
  return pair(s, 86_400, "d", 3600, "h");
}

// pair leaves the smaller unit out if its number is 0.
function pair(s, large, name, small, rest) {
  const more = Math.floor((s % large) / small);
  return `${Math.floor(s / large)} ${name}` + (more ? ` ${more} ${rest}` : "");
}

// whole is duration in whole seconds, for times that keep changing.
export const whole = (ms) => (ms < 10_000 ? `${Math.max(0, Math.floor(ms / 1000))} s` : duration(ms));

// ago formats how long ago an instant was, or how far in the future it is.
export function ago(instant, at = now()) {
  if (instant === undefined || instant === null) return "unknown";
  const ms = at - instant;
  if (Math.abs(ms) < 1000) return "now";
  return ms > 0 ? `${whole(ms)} ago` : `in ${whole(-ms)}`;
}

const zone = { utc: false };

// inUTC sets whether clock and hour use UTC or the time zone of the browser.
export function inUTC(utc) { zone.utc = utc; }

const dated = (instant) => new Date(Date.now() + instant - performance.now());

// clock formats an instant in full: day, time and zone.
export function clock(instant) {
  if (instant === undefined || instant === null) return "";
  return dated(instant).toLocaleString("sv-SE", { timeZone: zone.utc ? "UTC" : undefined, timeZoneName: "short" });
}

// hour formats an instant as a time of day, with the day if that is not today.
export function hour(instant) {
  if (instant === undefined || instant === null) return "unknown";
  const words = (date) => date.toLocaleString("sv-SE", { timeZone: zone.utc ? "UTC" : undefined }).split(" ");
  const [day, time] = words(dated(instant));
  const text = time + (zone.utc ? "Z" : "");
  return day === words(new Date())[0] ? text : `${day.slice(5)} ${text}`;
}

// instantOf returns the instant of a date and time in a text, such as the server sends.
export const instantOf = (text) => Date.parse(text) - Date.now() + performance.now();

export const count = (n) => (n ?? 0).toLocaleString("en-US");

// number returns a count with its noun: "1 lock", "2 locks".
export const number = (n, one, many = one + "s") => `${count(n)} ${n === 1 ? one : many}`;

// rate formats a number per second.
export function rate(n) {
  const digits = n >= 100 || n === 0 ? 0 : n >= 10 ? 1 : 2;
  return `${n.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })}/s`;
}

// token shortens a fencing token to its last digits, which change most.
export function token(text) {
  if (!text || text === "0") return "none";
  return text.length > 8 ? "…" + text.slice(-6) : text;
}

// later reports whether token a is greater than token b. Tokens are texts of up to 20 digits.
export function later(a, b) {
  return a.length !== b.length ? a.length > b.length : a > b;
}

// who names a holder or a waiter, as the command holdfast does.
export function who(h) {
  if (h.foreign) return "a client that is not holdfast";
  const found = foundOut(h, joined(h.label, " on ", joined(h.user, "@", h.host)));
  if (!found) return "another client";
  const inside = process(h);
  return inside ? `${found} (${inside})` : found;
}

// foundOut puts the caller that a server has identified before what a holder states about itself.
function foundOut({ caller, user, host, label }, said) {
  if (!caller) return said;
  if (user !== caller) return joined(caller, " as ", said);
  return label ? joined(caller, " as ", joined(label, " on ", host)) : joined(caller, "@", host);
}

function process(h) {
  if (h.person) return "a person";
  return [h.pid ? `pid ${h.pid}` : "", h.program].filter(Boolean).join(", ");
}

const joined = (a, between, b) => (a && b ? a + between + b : a || b || "");

// pieces splits a text into {text}, which is shown as it is, and {odd}: the code point of a single
// character that is invisible or changes the direction of the text.
export function pieces(text) {
  return text.split(oddOnes).filter(Boolean).map((part) => (oddOne.test(part)
    ? { odd: "U+" + part.codePointAt(0).toString(16).toUpperCase().padStart(4, "0") }
    : { text: part }));
}

// plain returns a text with such characters as code points, for titles and labels.
export const plain = (text) => pieces(text).map((p) => p.text ?? `[${p.odd}]`).join("");

const odd = "[\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb]";
const oddOne = new RegExp(`^${odd}$`);
const oddOnes = new RegExp(`(${odd})`);
