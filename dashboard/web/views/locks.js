// The table of all locks, and its filter.
import { html, useEffect, useRef, useState } from "../lib.js";
import { locks, ready, trouble, version } from "../fleet.js";
import { hold, may } from "../actions.js";
import { count, number } from "../format.js";
import { now } from "../now.js";
import { Empty, Text } from "../parts.js";
import { href, replace } from "../route.js";
import { Rows, lockStates } from "../rows.js";
import { Table } from "../table.js";

// The filter. The address contains it as parameters.
const noFilter = { prefix: "", holder: "", reason: "", state: "", sort: "" };
const filterOf = (params) => Object.fromEntries(Object.keys(noFilter).map((key) => [key, params.get(key) ?? ""]));
const sameFilter = (a, b) => Object.keys(noFilter).every((key) => a[key] === b[key]);

export function Locks({ params }) {
  const [filter, set] = useFilter(params);
  const rows = useRef(null);
  const grid = useRef(null);
  rows.current ??= new Rows();
  const known = version.value >= 0 && locks; // read version, to draw again at each change
  const { shown, counts } = rows.current.update(known, filter, now());
  const narrow = !sameFilter({ ...filter, sort: "" }, noFilter);
  const down = (event) => {
    if (event.key === "ArrowDown") grid.current?.focus({ preventScroll: true });
    else if (event.key === "Escape" && event.target.value) set({ [event.target.name]: "" });
    else return;
    event.preventDefault();
  };
  const input = (name, title) => html`<label>${title}
    <input type="search" name=${name} value=${filter[name]} spellcheck="false" autocomplete="off"
      onInput=${(event) => set({ [name]: event.target.value })} onKeyDown=${down} /></label>`;

  return html`<h1>Locks</h1>
    <form class="filter" role="search" aria-label="Filter" onSubmit=${(event) => event.preventDefault()}>
      ${input("prefix", "Name begins with")}
      ${input("holder", "Holder")}
      ${input("reason", "Reason")}
      <div class="states" role="group" aria-label="State">
        ${Object.entries(lockStates).map(([key, { title, means }]) => html`<button type="button" title=${means}
          aria-pressed=${filter.state === key} onClick=${() => set({ state: filter.state === key ? "" : key })}>${title} <small>${count(counts[key])}</small></button>`)}
      </div>
    </form>
    <p class="shown">${count(shown.length)} of ${number(locks.size, "lock")}
      ${narrow && html` <button type="button" onClick=${() => set({ ...noFilter, sort: filter.sort })}>Clear the filter</button>`}
      ${may("hold") && html` <button type="button" onClick=${() => hold()}>Hold a lock…</button>`}</p>
    <${FilterSaid} filter=${filter} n=${shown.length} />
    ${shown.length > 0 ? html`<${Table} shown=${shown} sort=${filter.sort} order=${(sort) => set({ sort })} grid=${grid} />`
      : !ready.value ? html`<${Empty} title="No locks have arrived yet.">${trouble.value ? "The page keeps trying: the note below says what is wrong." : "They are on their way."}<//>`
      : narrow ? html`<${Empty} title="No lock matches.">${filter.prefix && html`<a href=${href("lock", { name: filter.prefix })}>Open <${Text} value=${filter.prefix} /></a>, which nobody holds, or `}clear the filter to see ${number(locks.size, "other lock")}.<//>`
      : html`<${Empty} title="No lock is held.">Locks appear here as they are taken. To see one, run <code>holdfast run try -- sleep 60</code> on this store.<//>`}`;
}

// useFilter returns the filter, and a function that changes parts of it. The address follows a
// little later, because browsers limit how often a page may change it.
function useFilter(params) {
  const [filter, setFilter] = useState(() => filterOf(params));
  const written = useRef(filter);
  useEffect(() => {
    if (sameFilter(filterOf(params), written.current)) return;
    written.current = filterOf(params); // a link has led here
    setFilter(written.current);
  }, [params]);
  useEffect(() => {
    if (sameFilter(filter, written.current)) return undefined;
    const timer = setTimeout(() => {
      if (!location.hash.startsWith("#/locks")) return; // a link has led away, just now
      written.current = filter;
      replace("locks", filter);
    }, 250);
    return () => clearTimeout(timer);
  }, [filter]);
  return [filter, (change) => setFilter((old) => ({ ...old, ...change }))];
}

// FilterSaid announces the number of shown locks to screen readers, soon after the last keystroke.
function FilterSaid({ filter, n }) {
  const [said, say] = useState("");
  const now = useRef(n);
  now.current = n;
  const first = useRef(true);
  useEffect(() => {
    if (first.current) return void (first.current = false);
    const timer = setTimeout(() => say(`${number(now.current, "lock is", "locks are")} shown`), 800);
    return () => clearTimeout(timer);
  }, [filter]);
  return html`<p class="unseen" role="status">${said}</p>`;
}
