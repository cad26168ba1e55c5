import { html } from "../lib.js";

export function OneTime() { return html`<h1>OneTime</h1>`; }
