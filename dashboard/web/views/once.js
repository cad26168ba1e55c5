// Do-once keys: what is in progress, what is done, and when it is forgotten.
import { html, useEffect } from "../lib.js";
import { count, duration } from "../format.js";
import { Empty, Failed, Name, Text, Token, Who } from "../parts.js";
import { ForgetButton } from "../actions.js";
import { onEvent, session } from "../fleet.js";
import { href, replace } from "../route.js";
import { useAnswer } from "../answer.js";

const page = 100;
const states = { done: "✓ done", in_progress: "▶ in progress", schedule: "↻ schedule", unknown: "? unknown" };

export function Once({ params }) {
  const mine = session.value?.prefixes; // of those who may not list all
  const prefix = params.get("prefix") ?? mine?.[0] ?? "", cursor = params.get("cursor") ?? "";
  const forget = session.value?.actions.includes("forget");
  const { answer, problem, again } = useAnswer(session.value && "v1/once", { prefix, cursor, limit: page }, 5000);
  const keys = answer?.once ?? [];
  useEffect(() => onEvent((e) => { if (keys.some((k) => k.key === e.name)) again(); }), [answer]);
  return html`
    <h1>Do-once keys</h1>
    <form class="filters" role="search" onSubmit=${(e) => e.preventDefault()}>
      <label>Key begins with <input type="search" data-filter value=${prefix} onInput=${(e) => replace("once", { prefix: e.target.value })} /></label>
    </form>
    ${mine?.length > 1 && html`<nav aria-label="Prefixes">${mine.map((p) => html`<a href=${href("once", { prefix: p })} aria-current=${p === prefix}><${Text} value=${p} /></a>`)}</nav>`}
    ${problem && html`<${Failed} problem=${problem} again=${again} />`}
    ${answer && keys.length === 0 && html`<${Empty} title=${prefix ? "No key begins so" : "Nothing was done once, or all of it is forgotten"}>${prefix ? "Shorten the filter." : html`<code>holdfast once KEY -- COMMAND</code> does something once.`}<//>`}
    ${keys.length > 0 && html`
    <table>
      <thead><tr>${["Key", "State", "By, or of what size", "Forgotten"].map((t) => html`<th scope="col">${t}</th>`)}${forget && html`<th scope="col">Action</th>`}</tr></thead>
      <tbody>${keys.map((k) => html`<${Row} key=${k.key} once=${k} forget=${forget} again=${again} />`)}</tbody>
    </table>`}
    <nav class="pages" aria-label="Pages">
      ${cursor && html`<a href=${href("once", { prefix })}>First page</a>`}
      ${answer?.next_cursor && html`<a href=${href("once", { prefix, cursor: answer.next_cursor })}>Next ${page} keys</a>`}
    </nav>`;
}

function Row({ once: k, forget, again }) {
  return html`<tr>
    <th scope="row"><${Name} name=${k.key} /></th>
    <td class=${"state-" + k.state}>${states[k.state] ?? k.state}</td>
    <td>${detail(k)}</td>
    <td>${forgotten(k)}</td>
    ${forget && html`<td>${k.state === "done" && html`<${ForgetButton} name=${k.key} after=${again} />`}</td>`}
  </tr>`;
}

function forgotten({ state, expires_in_ms: left }) {
  const known = left !== null && left !== undefined;
  if (state === "in_progress") return known ? `its lease has ${duration(left)} left` : "";
  return known ? "in " + duration(left) : "never";
}

function detail(k) {
  if (k.state === "in_progress") return html`<${Who} holder=${k.holder} /> for ${duration(k.held_ms ?? 0)}`;
  if (k.state === "done") return html`${count(k.output_length)} bytes, token <${Token} value=${k.fencing_token_str} />`;
  const s = k.schedule;
  if (!s) return "";
  return html`${s.running ? html`<${Who} holder=${s.running} /> runs it; ` : ""}next <time datetime=${s.next}>${s.next ?? "never"}</time>, ${count(s.done)} done, ${count(s.missed)} missed${
    s.begun?.error ? html`, <b class="bad">✕ failing: <${Text} value=${s.begun.error} /></b>` : ""}`;
}
