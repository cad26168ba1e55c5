// Commands to copy, which do the same outside the page.
import { html, useRef, useState } from "../../lib.js";
import { newKey } from "../../api.js";
import { session } from "../../fleet.js";
import { commandsOf } from "./quote.js";

const forms = { cli: "Command line", curl: "curl", go: "Go" };
const tasks = { look: "see who holds it", history: "see what happened", take: "work under it", break: "break it" };

export function Copy({ lock }) {
  const [task, setTask] = useState("look");
  const [key] = useState(newKey);
  const holder = lock.holders.find((h) => !h.foreign && !h.released);
  const server = { url: new URL(".", location.href).href.replace(/\/$/, ""), known: Boolean(session.value?.sign_in) };
  const chosen = task === "break" && !holder ? "look" : task;
  const commands = commandsOf(chosen, lock, server, { token: holder?.fencing_token_str, key });
  return html`<label>To <select value=${chosen} onChange=${(e) => setTask(e.target.value)}>
      ${Object.entries(tasks).map(([is, words]) => (is !== "break" || holder) && html`<option value=${is}>${words}</option>`)}
    </select></label>
    ${Object.entries(forms).map(([is, title]) => html`<${Snippet} key=${is} title=${title} text=${commands[is]} />`)}
    ${server.known && html`<p>TOKEN is the token with which you have signed in.</p>`}`;
}

function Snippet({ title, text }) {
  const code = useRef(null);
  const [said, say] = useState("");
  const copy = async () => {
    say(await toClipboard(text, code.current) ? "copied" : "selected: copy it with Ctrl+C");
    setTimeout(say, 3000, "");
  };
  return html`<div class="snippet"><h3>${title}</h3><pre tabindex="0" aria-label=${title}><code ref=${code}>${text}</code></pre>
    <button type="button" onClick=${copy} aria-label=${"Copy: " + title}>Copy</button><span role="status">${said}</span></div>`;
}

// CopyLink is a button that copies the address of the view.
export function CopyLink() {
  const link = useRef(null);
  const [said, say] = useState("");
  const copy = async () => {
    say(await toClipboard(location.href, link.current) ? "copied" : location.href);
    setTimeout(say, 3000, "");
  };
  return html`<button type="button" class="copy" ref=${link} onClick=${copy}>Copy link</button> <span role="status">${said}</span>`;
}

// toClipboard copies a text and reports whether it did. Without TLS, browsers give a page no
// clipboard: then it selects the element, and copies the selection if the browser allows it.
async function toClipboard(text, element) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection().selectAllChildren(element);
    return document.execCommand("copy");
  }
}
