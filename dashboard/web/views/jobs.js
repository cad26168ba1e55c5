// Schedules, with the last, the next and the latest 30 runs, and elections, with their leaders.
import { html, useEffect } from "../lib.js";
import { useJobs } from "../answer.js";
import { isLed } from "../attention.js";
import { locks, version, watchQueues } from "../fleet.js";
import { count, duration, number } from "../format.js";
import { Columns, Day, Empty, Failed, Name, Since, Text, Who } from "../parts.js";

export function Jobs() {
  version.value; // the locks have changed
  useEffect(watchQueues, []);
  const { schedules, answer, problem, again } = useJobs();
  const leaders = [...locks.values()].filter((lock) => isLed(lock) && !lock.name.endsWith("@schedule"));
  return html`
    <h1>Jobs</h1>
    ${problem && html`<${Failed} problem=${problem} again=${again} />`}
    ${answer && schedules.length + leaders.length === 0 && html`<${Empty} title="There are no schedules, and nobody leads">
      <code>holdfast every</code> runs a command by a schedule, and <code>holdfast elect</code> runs it on one of several hosts.<//>`}
    ${schedules.length > 0 && html`<h2>Schedules</h2><table class="cards" aria-label="Schedules">
      <${Columns} of=${["Schedule", "Latest runs", "Last run", "Next run", "Runs", "Leader"]} />
      <tbody>${schedules.map((s) => html`<${JobRow} key=${s.name} of=${s} />`)}</tbody></table>`}
    ${leaders.length > 0 && html`<h2>Leaders</h2><table class="cards" aria-label="Leaders">
      <${Columns} of=${["Election", "Leader", "Leads for", "Standby"]} />
      <tbody>${leaders.map((l) => html`<tr key=${l.name}><th scope="row"><${Name} name=${l.name} /></th>
        <td data-is="Leader">${l.holders.length ? html`<${Who} holder=${l.holders[0]} />` : html`<b class="bad">✕ nobody</b>`}</td>
        <td data-is="Leads for">${l.holders.length > 0 && html`<${Since} at=${l.holders[0].since} />`}</td>
        <td data-is="Standby">${standby(l.queue)} ${l.queue?.slice(0, 5).map((p, i) => html`${i > 0 && ", "}<${Who} holder=${p} />`)}</td></tr>`)}</tbody></table>`}`;
}

function JobRow({ of: s }) {
  const failing = s.begun?.error, led = locks.get(s.name + "@schedule"), leader = led?.holders[0];
  return html`<tr>
    <th scope="row"><${Name} name=${s.name} /></th>
    <td data-is="Latest runs"><${Squares} runs=${s.runs ?? []} /></td>
    <td data-is="Last run">${s.last ? html`<${Day} at=${s.last.started} /> <small>took ${duration(s.last.took_ms)}, by <${Text} value=${s.last.by} /></small>` : "none yet"}
      ${failing && html`<br /><b class="bad">✕ failing</b> <small><${Text} value=${failing} /></small>`}</td>
    <td data-is="Next run">${s.running ? html`<b>▶ runs now</b> <small>by <${Who} holder=${s.running} /></small>` : s.next ? html`<${Day} at=${s.next} />` : "none"}</td>
    <td data-is="Runs">${number(s.done, "run")}${s.missed > 0 && html`<br /><span class="warn">${count(s.missed)} missed</span>`}</td>
    <td data-is="Leader">${leader ? html`<${Who} holder=${leader} /> <small>${standby(led.queue)}</small>` : html`<b class="bad">✕ nobody: no run will be begun</b>`}</td></tr>`;
}

const standby = (all = []) => (all.length ? `${count(all.length)} on standby` : "none on standby");

const signs = { done: "✓", retried: "↻", missed: "✕" };

// Squares shows the outcomes of the latest runs, the last at the right; its label counts them.
function Squares({ runs }) {
  if (!runs.length) return "–";
  const said = Object.keys(signs).map((kind) => [runs.filter((r) => r === kind).length, kind]).filter(([n]) => n).map(([n, kind]) => `${n} ${kind}`).join(", ");
  return html`<span class="squares" role="img" aria-label=${`The latest ${runs.length}: ${said}`} title=${said}>${runs.map((kind) => html`<i class=${kind}>${signs[kind]}</i>`)}</span>`;
}
