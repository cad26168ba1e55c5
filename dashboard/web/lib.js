// The libraries, as the rest of the page uses them.
import htm from "./vendor/htm.js";
import { h } from "./vendor/preact.js";

export { h, render, Fragment } from "./vendor/preact.js";
export { useEffect, useLayoutEffect, useRef, useState, useMemo, useId } from "./vendor/hooks.js";
export { signal, effect, batch } from "./signal.js";

// html makes elements of a template. What is put into it is text, never markup.
export const html = htm.bind(h);
