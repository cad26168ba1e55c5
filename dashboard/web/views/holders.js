import { html } from "../lib.js";

export function Holders() { return html`<h1>Holders</h1>`; }
