// What is said of the time that a lease has left.
import { duration } from "./format.js";

// left says what a bar shows of a holder at an instant: its kind, a word where there is one,
// the text for those who do not see it, and, if it drains, which share of the time is left.
export function left({ expires, ttl, released, person }, now) {
  if (expires === null) return { kind: "never", word: "no end", text: "it never runs out" };
  if (expires === undefined) return { kind: "unknown", word: "…", text: "the time left is not known yet" };
  const rest = expires - now;
  if (rest <= 0) return { kind: "over", word: "run out", text: "its time has run out" };
  const whole = Math.max(ttl || 0, rest);
  const share = rest / whole;
  const time = duration(rest);
  if (released) return { kind: "closed", word: "kept closed", share, text: `released, and kept closed for another ${time}` };
  if (person) return { kind: "frozen", share, text: `${time} left of what a person has asked for` };
  return { kind: share < 1 / 3 ? "low" : "live", share, text: `${time} left of ${duration(whole)}, unless it is renewed` };
}
