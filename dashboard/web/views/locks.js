import { html } from "../lib.js";

export function Locks() { return html`<h1>Locks</h1>`; }
