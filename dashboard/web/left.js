// The words for the time that a lease has left.
import { duration, hour, whole } from "./format.js";

// left returns what a bar shows for a holder at an instant: its kind, its word, the text for users
// who do not see it and, if the bar drains, the share of the time that is left.
export function left({ expires, ttl, renewed, since, released, person }, at) {
  if (expires === null) return { kind: "never", word: "no expiry", text: "it never expires" };
  if (expires === undefined) return { kind: "unknown", word: "…", text: "the time left is not known yet" };
  const rest = expires - at;
  if (rest <= 0) return { kind: "over", word: "expired", text: "its time has run out" };
  const all = Math.max(ttl || 0, rest);
  const share = rest / all;
  const time = whole(rest);
  if (released) return { kind: "closed", word: "cooling down", share, text: `released, and kept closed by its minimum hold for another ${time}` };
  if (person) return { kind: "frozen", word: `until ${hour(expires)}`, share, text: `until ${hour(expires)}, for another ${time}` };
  return { kind: share < 1 / 3 ? "low" : "live", word: time, share, text: `${time} left of ${duration(all)}, ${life(renewed, since, at)}` };
}

// life describes the last renewal of a lease.
function life(renewed, since, at) {
  if (renewed === undefined) return "unless it is renewed";
  return renewed - since < 1000 ? "not renewed yet" : `renewed ${whole(at - renewed)} ago`;
}
