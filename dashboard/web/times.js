// How the page writes instants: as long ago, or by a clock.
import { effect } from "./signal.js";
import { inUTC } from "./format.js";
import { kept } from "./kept.js";

export const times = kept("times", ["relative", "local", "UTC"]);

effect(() => inUTC(times.value === "UTC"));
