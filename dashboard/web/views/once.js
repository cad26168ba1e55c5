import { html } from "../lib.js";

export function Once() { return html`<h1>Once</h1>`; }
