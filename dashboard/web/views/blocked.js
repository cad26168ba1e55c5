import { html } from "../lib.js";

export function Blocked() { return html`<h1>Blocked</h1>`; }
