import { html } from "../lib.js";

export function Events() { return html`<h1>Events</h1>`; }
