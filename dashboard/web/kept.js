// The choices of the user, which the browser stores.
import { signal } from "./signal.js";

// kept returns a signal with the value that is stored under name, or else the first of values.
export function kept(name, values) {
  const key = "holdfast-" + name;
  let was;
  try { was = localStorage.getItem(key); } catch { /* it may refuse to keep anything */ }
  const one = signal(values.includes(was) ? was : values[0]);
  return {
    values,
    get value() { return one.value; },
    set value(next) {
      one.value = next;
      try { localStorage.setItem(key, next); } catch { /* it lasts as long as the page */ }
    },
  };
}
