// The table of locks. Only the rows near the visible part exist, all of the same height.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./lib.js";
import { Bar } from "./bar.js";
import { clock, count, plain, who, whole } from "./format.js";
import { trouble, watch } from "./fleet.js";
import { now } from "./now.js";
import { Mode, Text, Token, useTick } from "./parts.js";
import { go, href } from "./route.js";
import { lockStates, moved, rowsNear } from "./rows.js";

// The columns: the title, the order that sorts by the column, and the direction of the first click.
const columns = [
  { title: "Name", sort: "name", first: "ascending" },
  { title: "Holder" },
  { title: "Reason" },
  { title: "Held for", sort: "held", first: "descending" },
  { title: "Time left" },
  { title: "Token" },
  { title: "Queue", sort: "queue", first: "descending" },
];
const otherWay = { ascending: "descending", descending: "ascending" };

let latest = { name: undefined, index: -1 }; // the active row, for a user who comes back

// Table shows locks in the order sort, and calls order to change it. grid is a ref to the element
// that takes the focus.
export function Table({ shown, sort, order, grid }) {
  useTick(1000);
  const body = useRef(null);
  const { first, last } = useSpan(body, shown.length);
  const [active, activate] = useState(latest);
  const setActive = (row) => activate(latest = row);
  const at = place(shown, active);
  const visible = shown.slice(first, last);
  useWatch(visible);
  const second = trouble.value ?? Math.floor(now() / 1000);

  function press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const onGrid = event.target === grid.current;
    if (event.key === "Enter" && onGrid && at >= 0) return go("lock", { name: shown[at].name });
    const to = moved(event.key, at < 0 ? active.index : at, pageOf(body.current, shown.length), shown.length);
    if (to === undefined) return;
    event.preventDefault();
    grid.current.focus({ preventScroll: true });
    setActive({ name: shown[to].name, index: to });
    reveal(body.current, to, shown.length);
  }

  // When the table gets the focus, its first visible row becomes the active one.
  function enter(event) {
    if (event.target !== grid.current || at >= 0) return;
    const index = topmost(body.current, shown.length);
    setActive({ name: shown[index].name, index });
  }

  return html`<div class="grid" role="grid" aria-label="Locks" tabindex="0" ref=${grid} onKeyDown=${press} onFocus=${enter}
      aria-rowcount=${shown.length + 1} aria-activedescendant=${at >= first && at < last ? idOf(shown[at].name) : undefined}>
    <div role="rowgroup" class="grid-head"><div role="row" aria-rowindex="1" class="grid-row">
      ${columns.map((column) => html`<${Head} ...${column} by=${sort || "name"} order=${order} />`)}
    </div></div>
    <div role="rowgroup" class="grid-body" ref=${body}>
      <div role="none" style=${{ height: `calc(var(--row) * ${first})` }}></div>
      ${visible.map((row, i) => html`<${TableRow} key=${row.name} row=${row} index=${first + i} active=${first + i === at} second=${second} />`)}
      <div role="none" style=${{ height: `calc(var(--row) * ${shown.length - last})` }}></div>
    </div>
  </div>`;
}

function Head({ title, sort, first, by, order }) {
  if (!sort) return html`<div role="columnheader">${title}</div>`;
  const way = by === sort ? first : by === "-" + sort ? otherWay[first] : undefined;
  return html`<div role="columnheader" aria-sort=${way}>
    <button type="button" onClick=${() => order(by === sort ? "-" + sort : sort)}>${title}</button></div>`;
}

// TableRow is drawn again only if something in it has changed.
function TableRow({ row, index, active, second }) {
  const { lock, name, holder: h, waiting } = row;
  const since = useMemo(() => (h?.since === undefined ? undefined : "since " + clock(h.since)), [h?.since]);
  return useMemo(() => {
    const at = now();
    const is = Object.keys(lockStates).filter((key) => lockStates[key].is(row, at));
    const more = lock.holders.length - 1;
    return html`<div role="row" id=${idOf(name)} aria-rowindex=${index + 2} aria-selected=${active}
        class=${["grid-row", ...is.map((key) => "is-" + key)].join(" ")}>
      <${Cell} of="name" title=${plain(name)}>
        <a href=${href("lock", { name })} tabindex="-1"><${Text} value=${name} /></a> <${Mode} of=${lock} /><//>
      <${Cell} of="holder" title=${h && plain(who(h))}>
        ${h ? html`<${Text} value=${who(h)} />` : html`<i>nobody</i>`}${more > 0 && html` <i>and ${more} more</i>`}<//>
      <${Cell} of="reason" title=${plain(h?.reason ?? "")}>${h?.reason && html`<${Text} value=${h.reason} />`}<//>
      <${Cell} of="held" title=${since}>
        ${h && (h.released ? html`<i>cooling down</i>` : h.since === undefined ? "unknown" : whole(at - h.since))}
        ${is.includes("long") && html` <b title=${lockStates.long.means}>long</b>`}<//>
      <${Cell} of="left">${h && html`<${Bar} holder=${h} />`}<//>
      <${Cell} of="token">${h && !h.foreign && html`<${Token} value=${h.fencing_token_str} />`}<//>
      <${Cell} of="queue">${waiting > 0 ? html`<b>${count(waiting)} waiting</b>` : html`<i>–</i>`}<//>
    </div>`;
  }, [row, index, active, second]);
}

const Cell = ({ of, title, children }) => html`<div role="gridcell" class=${"cell-" + of} title=${title}>${children}</div>`;

// idOf returns the ID of the row of a name. An ID must not contain spaces.
const idOf = (name) => "lock-" + name.replace(/\s/g, (c) => "%" + c.charCodeAt(0));

// place returns the index of the active row, or -1 if it is not shown.
function place(shown, { name, index }) {
  if (name === undefined || shown[index]?.name === name) return index;
  return shown.findIndex((row) => row.name === name);
}

// useSpan returns the range of the rows near the visible part of the table's body.
function useSpan(body, total) {
  const [{ first, last }, set] = useState({ first: 0, last: 40 });
  const rows = useRef(total);
  rows.current = total;
  useLayoutEffect(() => {
    const measure = () => {
      const { top, height } = body.current.getBoundingClientRect();
      const next = rowsNear(-top, innerHeight, height / rows.current);
      set((old) => (old.first === next.first && old.last === next.last ? old : next));
    };
    measure();
    addEventListener("scroll", measure, { passive: true });
    addEventListener("resize", measure);
    return () => {
      removeEventListener("scroll", measure);
      removeEventListener("resize", measure);
    };
  }, []);
  return { first: Math.min(first, total), last: Math.min(last, total) };
}

// useWatch watches the visible locks. If they change all the time, it follows every 200 ms.
function useWatch(rows) {
  const { current: it } = useRef({});
  it.names = rows.map((row) => row.name);
  const turn = () => {
    it.timer = undefined;
    const old = it.stop;
    it.stop = watch(it.names);
    old?.();
  };
  useEffect(() => { it.timer ??= setTimeout(turn, it.stop ? 200 : 0); }, [it.names.join("\n")]);
  useEffect(() => () => {
    clearTimeout(it.timer);
    it.stop?.();
  }, []);
}

const pageOf = (body, total) => Math.max(1, Math.floor(0.8 * innerHeight / (body.offsetHeight / total)));

function topmost(body, total) {
  const { top, height } = body.getBoundingClientRect();
  return Math.min(total - 1, Math.max(0, Math.ceil((body.previousElementSibling.getBoundingClientRect().bottom - top) / height * total)));
}

// reveal scrolls until a row is visible.
function reveal(body, index, total) {
  if (index === 0) return scrollTo(0, 0);
  const { top, height } = body.getBoundingClientRect();
  const row = height / total;
  const above = top + index * row - body.previousElementSibling.getBoundingClientRect().bottom;
  const below = top + (index + 1) * row - innerHeight;
  if (above < 0) scrollBy(0, above);
  else if (below > 0) scrollBy(0, below);
}
