// Dialogs stand beside the page: what they are about may go away while they are open.
import { html, render, useEffect, useId, useRef } from "./lib.js";
import { signal } from "./signal.js";

const shown = signal(null), said = signal("");
let host;

// show opens a dialog, of a component and what it gets.
export function show(View, props) {
  if (!host) {
    host = document.body.appendChild(document.createElement("div"));
    render(html`<${Beside} />`, host);
  }
  said.value = "";
  shown.value = { View, props };
}

// say says something for a while.
export function say(what) {
  said.value = what;
  setTimeout(() => { if (said.value === what) said.value = ""; }, 8000);
}

const Beside = () => html`${shown.value && html`<${shown.value.View} key=${shown.value} ...${shown.value.props} />`}
  <div class="said" role="status">${said.value}</div>`;

export const toMain = () => document.getElementById("main").focus();

// Dialog is shown in front of the page until it is closed, by Escape as well. What had the
// keyboard has it again then, unless it is gone.
export function Dialog({ title, children }) {
  const element = useRef(null);
  const id = useId();
  const mine = useRef(shown.value).current;
  useEffect(() => {
    element.current.showModal();
    element.current.querySelector("input, form button, a")?.focus(); // and not the sign that closes it
  }, []);
  const closed = () => {
    if (shown.value !== mine) return; // another dialog has followed
    shown.value = null;
    setTimeout(() => { if (document.activeElement === document.body) toMain(); });
  };
  return html`<dialog ref=${element} aria-labelledby=${id} onClose=${closed}>
    <header><h2 id=${id}>${title}</h2>
      <button type="button" class="plain" aria-label="Close" onClick=${shut}>✕</button></header>
    ${children}
  </dialog>`;
}

// shut closes the dialog that an event comes from.
export const shut = (event) => event.target.closest("dialog").close();
