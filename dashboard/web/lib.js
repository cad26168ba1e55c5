// The libraries, as the rest of the page uses them.
import htm from "./vendor/htm.js";
import { h } from "./vendor/preact.js";

export { h, render, Fragment } from "./vendor/preact.js";
export { useEffect, useLayoutEffect, useRef, useState, useMemo, useId } from "./vendor/hooks.js";
export { signal, computed, effect, batch, untracked } from "./vendor/signals.js";
export { useSignal, useComputed, useSignalEffect } from "./vendor/signals.js";

// html makes elements of a template. What is put into it is text, never markup.
export const html = htm.bind(h);
