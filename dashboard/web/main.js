// The page: its frame, and the view that the address asks for.
import { html, render } from "./lib.js";
import { route, href } from "./route.js";
import { Overview } from "./views/overview.js";
import { Locks } from "./views/locks.js";
import { Lock } from "./views/lock.js";
import { Holders } from "./views/holders.js";
import { Blocked } from "./views/blocked.js";
import { Once } from "./views/once.js";
import { OneTime } from "./views/onetime.js";
import { Events } from "./views/events.js";

const views = {
  overview: ["Overview", Overview],
  locks: ["Locks", Locks],
  lock: [null, Lock], // of one name: #/lock?name=
  holders: ["Holders", Holders],
  blocked: ["Blocked by", Blocked],
  once: ["Do-once", Once],
  onetime: ["One-time", OneTime],
  events: ["Events", Events],
};

function Page() {
  const { view, params } = route.value;
  const [, View] = views[view] ?? views.overview;
  return html`
    <nav aria-label="Views">
      ${Object.entries(views).filter(([, [title]]) => title).map(([key, [title]]) => html`
        <a href=${href(key)} aria-current=${key === view ? "page" : undefined}>${title}</a>`)}
    </nav>
    <main><${View} params=${params} /></main>`;
}

render(html`<${Page} />`, document.getElementById("page"));
