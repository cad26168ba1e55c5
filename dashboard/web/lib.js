// The libraries, under the names that the other scripts use.
import { htm } from "./vendor/htm.js";
import { hooks } from "./vendor/hooks.js";
import { preact } from "./vendor/preact.js";

export const { h, options, render, Fragment } = preact;
export const { useEffect, useLayoutEffect, useRef, useState, useMemo, useId } = hooks;

// html makes elements from a template. Values in the template become text, never markup.
export const html = htm.bind(h);
