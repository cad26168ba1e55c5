import { html } from "../lib.js";

export function Lock() { return html`<h1>Lock</h1>`; }
