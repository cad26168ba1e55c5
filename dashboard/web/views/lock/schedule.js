// The state of a job that runs by a schedule.
import { html } from "../../lib.js";
import { count, duration } from "../../format.js";
import { Day, Text, Who } from "../../parts.js";

export function Schedule({ of: s }) {
  return html`<section class="card"><h2>Schedule</h2><dl>
    <dt>Next run</dt><dd>${s.next ? html`<${Day} at=${s.next} />` : "there is none"}</dd>
    ${s.running && html`<dt>Runs now</dt><dd><${Who} holder=${s.running} /></dd>`}
    ${s.begun?.error && html`<dt>Failing</dt><dd class="bad">the run of <${Day} at=${s.begun.scheduled} />,
      attempt ${count(s.begun.attempts)} by <${Text} value=${s.begun.by} />: <${Text} value=${s.begun.error} /></dd>`}
    <dt>Last done</dt><dd>${s.last ? html`<${Day} at=${s.last.scheduled} />, in ${duration(s.last.took_ms)}, by <${Text} value=${s.last.by} />` : "none yet"}</dd>
    <dt>Runs</dt><dd>${count(s.done)} done, ${count(s.missed)} missed</dd>
    ${s.led !== undefined && html`<dt>Led by</dt><dd>${s.leader ? html`<${Who} holder=${s.leader} />` : "nobody: no run will be begun"}${s.standby?.length > 0 && `, ${count(s.standby.length)} on standby`}</dd>`}
    ${s.gaps.map((g) => html`<dt>Missed</dt><dd class="bad">${count(g.count)} from <${Day} at=${g.first} /> to <${Day} at=${g.last} />${g.error && html`: <${Text} value=${g.error} />`}</dd>`)}
  </dl></section>`;
}
