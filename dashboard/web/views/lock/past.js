// The history of a name, and the events since.
import { useEffect, useRef, useState } from "../../lib.js";
import { get, named } from "../../api.js";
import { onEvent } from "../../fleet.js";
import { ends } from "../../kinds.js";
import { merge } from "./leases.js";

const full = 64; // events that a store keeps of a name
const retryAfter = 3000; // ms before a failed request for a history is repeated
const toldWithin = 500; // ms for the event of an end to arrive

// usePast returns {events, read, full, problem, again}. An event has its instant in `at`.
export function usePast(name, holders) {
  const past = useRef({ events: [], read: false }).current;
  const [, draw] = useState(0);
  useEffect(() => {
    const end = new AbortController();
    let timer;
    const read = async () => {
      clearTimeout(timer);
      try {
        const { events } = await get(named("v1/locks", name, "history"), {}, { signal: end.signal });
        const now = performance.now();
        past.events = merge(past.events, events.map((e) => ({ ...e, at: now - e.ago_ms })), full);
        Object.assign(past, { read: true, problem: null, full: past.full || events.length >= full });
      } catch (problem) {
        if (end.signal.aborted) return;
        past.problem = problem;
        if (problem.status === 0 || problem.status >= 502) timer = setTimeout(read, retryAfter);
      }
      draw((n) => n + 1);
    };
    past.again = read;
    const stop = onEvent((e) => {
      if (e.event === "gap") read(); // the history has the missed events
      else if (e.name === name) past.events = merge(past.events, [e], Infinity);
    });
    read();
    return () => { end.abort(); clearTimeout(timer); stop(); };
  }, [name]);
  useUnended(past, holders);
  return past;
}

// useUnended reads the history again if a holder is gone and no event reports how. A store notices
// that a lease has expired when a client sends it a request.
function useUnended(past, holders) {
  const had = useRef(new Set()).current;
  const tokens = holders.filter((h) => !h.foreign).map((h) => h.fencing_token_str);
  useEffect(() => {
    const gone = [...had].filter((token) => !tokens.includes(token));
    had.clear();
    for (const token of tokens) had.add(token);
    if (gone.length === 0) return;
    const told = () => gone.every((token) => past.events.some((e) => e.fencing_token_str === token && ends.includes(e.event)));
    setTimeout(() => { if (!told()) past.again(); }, toldWithin);
  }, [tokens.join()]);
}
