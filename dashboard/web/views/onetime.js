// The counts of one-time tokens that this server keeps for each collection; never a secret.
import { html } from "../lib.js";
import { duration, number, plain } from "../format.js";
import { Empty, Failed, Text } from "../parts.js";
import { forAll, partly, useAnswer } from "../answer.js";

const counts = [
  ["issued", "token", "made"],
  ["redeemed", "token", "used, once each"],
  ["refused", "attempt", "used, revoked, unknown or mistyped token"],
  ["expired", "attempt", "expired token"],
  ["failed", "attempt", "store unavailable"],
  ["revoked", "token", "before they were used"],
  ["pruned", "token", "forgotten, long after they expired"],
];

export function OneTime() {
  const { answer, problem, again } = useAnswer(forAll("v1/onetime"), {}, 5000);
  return html`
    <h1>One-time tokens</h1>
    ${partly() && html`<${Empty} title="You may not read all names">The counts are shown to those who may.<//>`}
    ${problem && html`<${Failed} problem=${problem} again=${again} />`}
    ${answer && html`
      <p>What this server has done since it started ${duration(answer.since_ms)} ago. Other servers of the store count for themselves, and a secret is shown nowhere.</p>
      ${answer.collections.length === 0 && html`<${Empty} title="There are no collections">A program makes a token with <code>POST v1/onetime</code>.<//>`}
      ${answer.collections.map((c) => html`
      <section key=${c.name} aria-label=${plain(c.name)}><h2>Collection <${Text} value=${c.name} /></h2>
        <ul class="tiles">${counts.map(([name, unit, title]) => html`
          <li class="tile"><div><span>${name}</span> <b>${number(c[name], unit)}</b> <small>${title}</small></div></li>`)}</ul>
      </section>`)}`}`;
}
