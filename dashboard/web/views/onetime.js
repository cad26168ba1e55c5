// What this server has done with one-time tokens: counts of each collection, never a secret.
import { html } from "../lib.js";
import { count, duration } from "../format.js";
import { Empty, Failed, Text } from "../parts.js";
import { useAnswer } from "../answer.js";

const columns = [
  ["issued", "made, since this server started"],
  ["redeemed", "used, each the only time"],
  ["refused", "that somebody tried to use in vain: used already, revoked, unknown or malformed"],
  ["expired", "that somebody tried to use too late"],
  ["failed", "whose use failed because the store did not serve"],
  ["revoked", "taken back before they were used"],
  ["pruned", "forgotten: over for long enough"],
];

export function OneTime() {
  const { answer, problem, again } = useAnswer("v1/onetime", {}, 5000);
  return html`
    <h1>One-time tokens</h1>
    ${problem && html`<${Failed} problem=${problem} again=${again} />`}
    ${answer && html`
      <p>What this server has done since it started ${duration(answer.since_ms)} ago. Other servers of the store count for themselves, and a secret is shown nowhere.</p>
      ${answer.collections.length === 0 ? html`<${Empty} title="There are no collections">A program makes a token with <code>POST v1/onetime</code>.<//>` : html`
      <div class="scroll"><table>
        <thead><tr><th scope="col">Collection</th>${columns.map(([name, title]) => html`<th scope="col" class="number" title=${title}>${name}</th>`)}</tr></thead>
        <tbody>${answer.collections.map((c) => html`
          <tr key=${c.name}><th scope="row"><${Text} value=${c.name || "(default)"} /></th>
            ${columns.map(([name, title]) => html`<td class="number" title=${`${name}: tokens ${title}`}>${count(c[name])}</td>`)}</tr>`)}
        </tbody></table></div>`}`}`;
}
