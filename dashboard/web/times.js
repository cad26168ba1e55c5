// How the page shows instants: relative to now, or by a clock.
import { effect } from "./signal.js";
import { inUTC } from "./format.js";
import { kept } from "./kept.js";

export const times = kept("times", ["relative", "local", "UTC"]);

effect(() => inUTC(times.value === "UTC"));
