// The libraries, as the rest of the page uses them.
import { htm } from "./vendor/htm.js";
import { hooks } from "./vendor/hooks.js";
import { preact } from "./vendor/preact.js";

export const { h, options, render, Fragment } = preact;
export const { useEffect, useLayoutEffect, useRef, useState, useMemo, useId } = hooks;

// html makes elements of a template. What is put into it is text, never markup.
export const html = htm.bind(h);
