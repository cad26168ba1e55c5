// The tokens of a name over time: a staircase that never goes down.
import { html } from "../../lib.js";
import { compare, heightsOf, stepsOf } from "./leases.js";

export function Staircase({ leases, from, now }) {
  const known = leases.filter((l) => l.from !== undefined);
  if (known.length === 0) return null;
  const x = (t) => Math.max(0, (1000 * (t - from)) / (now - from));
  const heights = heightsOf(known).map((h) => 94 - 88 * h);
  const path = known.map((l, i) => (i ? `H${x(l.from)}V${heights[i]}` : `M${x(l.from)} ${heights[i]}`)).join("") + "H1000";
  const steps = stepsOf(known).slice(1).map(String).sort(compare);
  return html`<div class="stairs">
    <svg viewBox="0 0 1000 100" preserveAspectRatio="none" aria-hidden="true"><path d=${path} /></svg>
    <p>${steps.length > 0 && html`From <code>${known[0].token}</code>, in ${steps.length > 1 ? `steps of ${spaced(steps[0])} to` : "a step of"} ${spaced(steps.at(-1))}, to `}
      <code>${known.at(-1).token}</code>. Each lease has a greater token than all before it.</p>
  </div>`;
}

const spaced = (digits) => BigInt(digits).toLocaleString("en-US");
