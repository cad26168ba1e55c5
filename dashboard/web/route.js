// The current view, from the address: #/VIEW?KEY=VALUE. The view is in the hash, because the page
// is served under any prefix, and by any file server.
import { signal } from "./signal.js";

// route is {view, params}: params is a URLSearchParams that must not be changed.
export const route = signal(readRoute());

been();
addEventListener("hashchange", () => {
  if (!been()) scrollTo(0, 0); // a new step; on the way back, the browser scrolls
  route.value = readRoute();
});

// been reports whether this step of the browser's history was visited before, and marks it.
function been() {
  const old = history.state;
  history.replaceState(true, "");
  return old;
}

function readRoute() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?", 2);
  return { view: path || "overview", params: new URLSearchParams(query) };
}

// href returns the address of a view. An empty or missing parameter is left out.
export function href(view, params = {}) {
  const q = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) {
    if (value !== "" && value !== undefined && value !== null) q.set(key, value);
  }
  const text = q.toString();
  return "#/" + view + (text && "?" + text);
}

// go shows a view; replace does so without a step in the browser's history.
export function go(view, params) { location.hash = href(view, params); }

export function replace(view, params) {
  history.replaceState(true, "", href(view, params));
  route.value = readRoute();
}
