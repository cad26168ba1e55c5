// The page: its frame, and the view that the address names.
import { html, render, useEffect, useRef } from "./lib.js";
import { route, href } from "./route.js";
import { begun, follow, session, trouble } from "./fleet.js";
import { Status, Notices, SignIn, Losses } from "./frame.js";
import { Overview } from "./views/overview.js";
import { Locks } from "./views/locks.js";
import { Lock } from "./views/lock.js";
import { Holders } from "./views/holders.js";
import { Blocked } from "./views/blocked.js";
import { Once } from "./views/once.js";
import { OneTime } from "./views/onetime.js";
import { Events } from "./views/events.js";
import { Jobs } from "./views/jobs.js";

const views = {
  overview: ["Overview", Overview],
  locks: ["Locks", Locks],
  lock: [null, Lock], // of one name: #/lock?name=
  holders: ["Holders", Holders],
  blocked: ["Blocked by", Blocked],
  jobs: ["Jobs", Jobs],
  once: ["Do-once", Once],
  onetime: ["One-time", OneTime],
  events: ["Events", Events],
};

function Page() {
  const { view, params } = route.value;
  const [title, View] = views[view] ?? views.overview;
  const { dataset } = document.documentElement;
  useEffect(() => { document.title = `${params.get("name") ?? title ?? "Overview"} · holdfast`; });
  useEffect(() => { trouble.value ? dataset.old = "" : delete dataset.old; }, [trouble.value]);
  useHeading(view + (view === "lock" ? params.get("name") : ""));
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to content</a>
    <header class="top">
      <a class="brand" href=${href("overview")}><img src="icon.svg" alt="" width="20" height="20" /> holdfast</a>
      <${Nav} view=${view} />
      <${Status} />
    </header>
    <main id="main" tabindex="-1">${session.value === null ? html`<${SignIn} />` : html`<${View} params=${params} />`}</main>
    <${Notices} /><${Losses} />`;
}

// useHeading moves the focus to the heading when the view changes.
function useHeading(place) {
  const was = useRef(place);
  useEffect(() => {
    if (was.current === place) return;
    was.current = place;
    const heading = document.querySelector("main h1");
    if (!heading || document.activeElement?.closest("dialog")) return;
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  }, [place]);
}

const Nav = ({ view }) => html`<nav aria-label="Views">
  ${Object.entries(views).filter(([, [title]]) => title).map(([key, [title]]) => html`
    <a href=${href(key)} aria-current=${key === view ? "page" : undefined}>${title}</a>`)}
</nav>`;

// skip moves the focus to the view without changing the address, which names the view.
function skip(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

// The page is drawn when the first list is requested, but after 100 ms at the latest.
follow();
Promise.race([begun, new Promise((late) => setTimeout(late, 100))]).then(() => render(html`<${Page} />`, document.getElementById("page")));
