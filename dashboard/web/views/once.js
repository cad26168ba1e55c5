// Do-once keys: their state, in progress or done, and when they expire.
import { html, useEffect } from "../lib.js";
import { count, duration } from "../format.js";
import { Columns, Empty, Failed, Name, Text, Token, Who } from "../parts.js";
import { ForgetButton } from "../actions.js";
import { onEvent, session } from "../fleet.js";
import { href, replace } from "../route.js";
import { useAnswer } from "../answer.js";

const page = 100;
const states = { done: "✓ done", in_progress: "▶ in progress", unknown: "? unknown", schedule: "↻ schedule" };

export function Once({ params }) {
  const mine = session.value?.prefixes; // set if the caller may not list all keys
  const prefix = params.get("prefix") ?? mine?.[0] ?? "", cursor = params.get("cursor") ?? "", state = params.get("state") ?? "", narrow = params.get("prefix") || state;
  const { answer, problem, again } = useAnswer(session.value && "v1/once", { prefix, cursor, state, limit: page }, 5000);
  const keys = answer?.once ?? [];
  useEffect(() => onEvent((e) => { if (keys.some((k) => k.key === e.name)) again(); }), [answer]);
  const set = (change) => replace("once", { prefix, state, ...change });
  return html`
    <h1>Do-once keys</h1>
    <form class="filters" role="search" onSubmit=${(e) => e.preventDefault()}>
      <label>Key begins with <input type="search" value=${prefix} onInput=${(e) => set({ prefix: e.target.value })} /></label>
      <label>State <select value=${state} onChange=${(e) => set({ state: e.target.value })}><option value="">all</option>
        ${Object.entries(states).map(([is, word]) => html`<option value=${is}>${word.slice(2)}</option>`)}</select></label>
    </form>
    ${mine?.length > 1 && html`<nav aria-label="Prefixes">${mine.map((p) => html`<a href=${href("once", { prefix: p, state })} aria-current=${p === prefix}><${Text} value=${p} /></a>`)}</nav>`}
    ${problem && html`<${Failed} problem=${problem} again=${again} />`}
    ${answer && keys.length === 0 && html`<${Empty} title=${narrow ? "No key matches" : "There are no do-once keys"}>${narrow ? "Shorten the filter." : html`<code>holdfast once KEY -- COMMAND</code> does something once.`}<//>`}
    ${keys.length > 0 && html`
    <table class="cards" aria-label="Do-once keys">
      <${Columns} of=${["Key", "State", "Details", "Expires"]} />
      <tbody>${keys.map((k) => html`<${OnceRow} key=${k.key} once=${k} again=${again} />`)}</tbody>
    </table>`}
    <nav class="pages" aria-label="Pages">
      ${cursor && html`<a href=${href("once", { prefix, state })}>First page</a>`}
      ${answer?.next_cursor && html`<a href=${href("once", { prefix, state, cursor: answer.next_cursor })}>Next ${page} keys</a>`}
    </nav>`;
}

const OnceRow = ({ once: k, again }) => html`<tr>
    <th scope="row"><${Name} name=${k.key} /></th>
    <td data-is="State" class=${"state-" + k.state}>${states[k.state] ?? k.state}</td>
    <td data-is="Details">${detail(k)}</td>
    <td data-is="Expires">${expires(k)} ${k.state === "done" && html`<${ForgetButton} name=${k.key} after=${again} />`}</td></tr>`;

function expires({ state, expires_in_ms: left }) {
  if (left === null || left === undefined) return state === "in_progress" ? "" : "never";
  return state === "in_progress" ? `its lease, in ${duration(left)}` : `in ${duration(left)}`;
}

function detail(k) {
  if (k.state === "in_progress") return html`<${Who} holder=${k.holder} /> for ${duration(k.held_ms ?? 0)}`;
  if (k.state === "done") return html`${count(k.output_length)} bytes, token <${Token} value=${k.fencing_token_str} />`;
  return k.schedule ? html`<a href=${href("jobs")}>Jobs</a>` : "";
}
