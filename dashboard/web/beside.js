// Dialogs and status messages. They are outside the tree of the page, because the element that
// opened a dialog may disappear while the dialog is open.
import { html, render, useEffect, useId, useRef } from "./lib.js";
import { signal } from "./signal.js";

const shown = signal(null), said = signal("");
let host;

// show opens the dialog that the component View draws with props.
export function show(View, props) {
  if (!host) {
    host = document.body.appendChild(document.createElement("div"));
    render(html`<${Beside} />`, host);
  }
  said.value = "";
  shown.value = { View, props };
}

// say shows a status message for 8 seconds.
export function say(what) {
  said.value = what;
  setTimeout(() => { if (said.value === what) said.value = ""; }, 8000);
}

const Beside = () => html`${shown.value && html`<${shown.value.View} key=${shown.value} ...${shown.value.props} />`}
  <div class="said" role="status">${said.value}</div>`;

export const toMain = () => document.getElementById("main").focus();

// Dialog is a modal dialog, which Escape closes too. The element that had the focus before gets
// it back. If that element is gone, the main part of the page gets the focus.
export function Dialog({ title, children }) {
  const element = useRef(null);
  const id = useId();
  const mine = useRef(shown.value).current;
  useEffect(() => {
    element.current.showModal();
    element.current.querySelector("input, form button, a")?.focus(); // not the button that closes the dialog
  }, []);
  const closed = () => {
    if (shown.value !== mine) return; // another dialog has replaced this one
    shown.value = null;
    setTimeout(() => { if (document.activeElement === document.body) toMain(); });
  };
  return html`<dialog ref=${element} aria-labelledby=${id} onClose=${closed}>
    <header><h2 id=${id}>${title}</h2>
      <button type="button" class="plain" aria-label="Close" onClick=${shut}>✕</button></header>
    ${children}
  </dialog>`;
}

// shut closes the dialog in which an event occurred.
export const shut = (event) => event.target.closest("dialog").close();
