// The search that "/" opens in every view, and the list of keys that "?" opens.
import { html, useId, useState } from "./lib.js";
import { Dialog, show, shut } from "./beside.js";
import { hold, may } from "./actions.js";
import { locks, session, version } from "./fleet.js";
import { meanings, note } from "./find.js";
import { number } from "./format.js";
import { Text } from "./parts.js";
import { href } from "./route.js";

export const search = () => session.value && show(Search);

function Search() {
  version.value; // draw again when the locks change
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const id = useId();
  const rows = results(text);
  const move = (event) => {
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    setAt((to + rows.length) % (rows.length || 1));
  };
  const submit = (event) => {
    event.preventDefault();
    document.getElementById(id + at)?.click();
  };
  return html`<${Dialog} title="Search"><form onSubmit=${submit}>
    <input class="wide" name="search" role="combobox" aria-label="Name, host, user, reason or label" placeholder="Name, host, user, reason or label" autocomplete="off" spellcheck="false"
      aria-expanded=${rows.length > 0} aria-controls=${id} aria-activedescendant=${rows.length ? id + at : undefined} value=${text}
      onInput=${(e) => { setText(e.target.value); setAt(0); }} onKeyDown=${move} />
    <div class="found" role="listbox" id=${id} aria-label="Found">${rows.map((row, i) => html`<a role="option" id=${id + i} key=${i} tabindex="-1" aria-selected=${i === at}
      href=${row.to} onClick=${(e) => { shut(e); row.act?.(e); }}><b><${Text} value=${row.title} /></b> <small><${Text} value=${row.note} /></small></a>`)}</div></form>
  <//>`;
}

// results returns the rows for a text. Every name can be opened, even if no lease exists. With the
// right to hold, a free name can be held.
function results(text) {
  const { names, people, reasons } = meanings(locks, text);
  const name = text.trim();
  if (!name) return [];
  const rows = names.map(({ lock, why }) => ({ to: href("lock", { name: lock.name }), title: lock.name, note: why ?? note(lock) }));
  for (const { key, value, holds, waits } of people) {
    rows.push({ to: href("holders", { [key]: value }), title: value, note: `${key} · holds ${holds}, waiting for ${waits}` });
  }
  if (reasons) rows.push({ to: href("locks", { reason: name }), title: name, note: `in the reasons of ${number(reasons, "lock")}` });
  if (!names.some(({ lock }) => lock.name === name)) rows.push({ to: href("lock", { name }), title: name, note: "open this name, held or not" });
  if (may("hold", name) && !locks.get(name)?.held) {
    rows.push({ to: href("lock", { name }), title: `Hold ${name}…`, note: "for a person, without a process", act: (e) => { e.preventDefault(); hold(name); } });
  }
  return rows;
}

const keys = [["/", "search"], ["?", "this list"], ["↑ ↓ Home End", "move in a table or a list"], ["Enter", "open"], ["Esc", "close, or clear a filter"], ["← →", "move in a chart"]];

const Keys = () => html`<${Dialog} title="Keys"><dl>${keys.map(([key, means]) => html`<dt><kbd>${key}</kbd></dt><dd>${means}</dd>`)}</dl><//>`;

addEventListener("keydown", (event) => {
  const open = { "/": search, "?": () => show(Keys) }[event.key];
  if (!open || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
  event.preventDefault();
  open();
});
