// How long something took, on a log scale: a table whose rows are the bars.
import { html } from "../../lib.js";
import { count, duration } from "../../format.js";
import { bucketsOf, quantile } from "./buckets.js";

export function Histogram({ title, values }) {
  const buckets = bucketsOf(values);
  const most = Math.max(...buckets.map((b) => b.count));
  return html`<table class="histogram">
    <caption>${title}: ${values.length ? `half ${within(quantile(values, 0.5))}, 95 % ${within(quantile(values, 0.95))}` : "nothing yet"}</caption>
    ${buckets.length > 0 && html`<thead><tr><th scope="col">from</th><th scope="col"><span class="unseen">bar</span></th><th scope="col">times</th></tr></thead>
    <tbody>${buckets.map((b) => html`<tr key=${b.from}>
      <th scope="row">${b.from ? duration(b.from) : "at once"}</th>
      <td><svg aria-hidden="true"><rect width=${(100 * b.count) / most + "%"} height="100%" /></svg></td>
      <td>${count(b.count)}</td></tr>`)}</tbody>`}
  </table>`;
}

const within = (ms) => (ms < 1 ? "at once" : `within ${duration(ms)}`);
