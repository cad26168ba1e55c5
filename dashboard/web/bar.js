// The bar of a lease: the share of its time that is left. An animation of the browser drains the
// bar, so that no script runs meanwhile. The bar jumps when the lease is renewed, and stands still
// while the shown state is old.
import { html, useLayoutEffect, useRef } from "./lib.js";
import { signal } from "./signal.js";
import { trouble } from "./fleet.js";
import { left } from "./left.js";
import { now } from "./now.js";
import { useTick } from "./parts.js";

// Users who prefer no motion see a step each second.
const calmly = matchMedia("(prefers-reduced-motion: reduce)");
const calm = signal(calmly.matches);
calmly.addEventListener("change", () => { calm.value = calmly.matches; });

// The computed end of a lease varies with the time that replies take. A difference of less than
// this share of the lease's time is not a renewal.
const jitter = 1 / 100;

// Bar shows the time that a holder's lease has left.
export function Bar({ holder }) {
  useTick(1000); // for the text: the bar itself needs no script
  const fill = useRef(null);
  const drawn = useRef(null);
  const { kind, word, text, share } = left(holder, now());
  const drains = share !== undefined;
  const how = (trouble.value ? "still" : "") + (calm.value ? "calm" : "");
  useLayoutEffect(() => {
    drawn.current = drains ? drain(fill.current, drawn.current, holder, how) : null;
  }, [holder.expires, holder.ttl, drains, how]);
  useLayoutEffect(() => () => drawn.current?.motion.cancel(), []); // a running animation keeps its whole view in memory
  const said = drains
    ? { role: "meter", "aria-label": "time left", "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": Math.round(100 * share), "aria-valuetext": text }
    : { role: "img", "aria-label": text };
  return html`<span class=${"bar bar-" + kind} title=${text} ...${said}>
    ${drains && html`<span class="bar-track"><span class="bar-fill" ref=${fill}></span></span>`}<span class="bar-word">${word}</span></span>`;
}

// drain starts the animation of a bar towards the lease's end, unless it runs already. It returns
// what is drawn now.
function drain(fill, was, { expires, ttl }, how) {
  const rest = Math.max(1, expires - now());
  const whole = Math.max(ttl || 0, rest);
  const same = was && was.fill === fill;
  const moved = same ? expires - was.expires : 0;
  if (same && Math.abs(moved) < jitter * whole && was.ttl === ttl && was.how === how) return was;
  was?.motion.cancel();
  const calm = how.endsWith("calm");
  const motion = fill.animate({ transform: [`scaleX(${rest / whole})`, "scaleX(0)"] },
    { duration: rest, fill: "forwards", easing: calm ? `steps(${Math.ceil(rest / 1000)})` : "linear" });
  if (how.startsWith("still")) motion.pause();
  else if (moved >= jitter * whole && !calm) fill.parentNode.animate({ opacity: [0.4, 1] }, 400); // renewed
  return { fill, expires, ttl, how, motion };
}
