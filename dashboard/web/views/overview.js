import { html } from "../lib.js";

export function Overview() { return html`<h1>Overview</h1>`; }
