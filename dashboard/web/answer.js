import { useEffect, useRef, useState } from "./lib.js";
import { get } from "./api.js";
import { session } from "./fleet.js";

// forAll returns path if the caller may read all names, and otherwise false or undefined.
export const forAll = (path) => session.value && !session.value.prefixes && path;

export const partly = () => Boolean(session.value?.prefixes);

// useAnswer requests a path when the component is first shown, then every so many ms while the
// page is visible, and when again() is called. It returns {answer, problem, again}. If a request
// fails, the previous answer stays. Without a path it sends no request.
export function useAnswer(path, params, every) {
  const [state, set] = useState({});
  const again = useRef(null);
  const query = JSON.stringify(params);
  useEffect(() => {
    if (!path) return undefined;
    let over = false, timer = 0;
    async function ask() {
      clearTimeout(timer);
      let next;
      try { next = { answer: await get(path, params), query }; } catch (problem) { next = { problem }; }
      if (over) return;
      set((old) => ({ ...old, problem: undefined, ...next }));
      clearTimeout(timer);
      if (!document.hidden) timer = setTimeout(ask, next.problem ? 2000 : every);
    }
    const shown = () => { if (!document.hidden) ask(); };
    again.current = () => { clearTimeout(timer); timer = setTimeout(ask, 200); };
    document.addEventListener("visibilitychange", shown);
    ask();
    return () => { over = true; clearTimeout(timer); document.removeEventListener("visibilitychange", shown); };
  }, [path, query, every]);
  // An answer for other params does not count.
  return { ...state, answer: state.query === query ? state.answer : undefined, again: () => again.current?.() };
}

// useJobs requests the schedules. It returns {schedules, answer, problem, again}.
export function useJobs() {
  const told = useAnswer(session.value && "v1/once", { prefix: session.value?.prefixes?.[0], state: "schedule", limit: 1000 }, 15_000);
  return { ...told, schedules: (told.answer?.once ?? []).filter((k) => k.schedule).map((k) => k.schedule) };
}
