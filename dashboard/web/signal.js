// Signals: when the value of a signal changes, the components that read it are drawn again, and
// the effects that read it run again.
import { options } from "./lib.js";

let reader; // the function that reads now; its `read` has the sets of readers that contain it

function use(next, f) {
  const old = reader;
  reader = next;
  try { return f(); } finally { reader = old; }
}

export function signal(value) {
  const readers = new Set();
  return {
    get value() {
      if (reader) reader.read.add(readers.add(reader));
      return value;
    },
    set value(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const tell of [...readers]) waiting ? waiting.add(tell) : tell();
    },
  };
}

// effect runs f now, and again when a signal that f has read changes.
export function effect(f) {
  const run = () => use(run, f);
  run.read = new Set();
  run();
}

let waiting; // readers that a batch calls at its end

// batch runs f, and then calls the readers of the changed signals, each once.
export function batch(f) {
  waiting = new Set();
  f();
  const all = waiting;
  waiting = undefined;
  for (const tell of all) tell();
}

// Preact calls these hooks before and after it draws a component, and when it removes one.
const { __r: beforeDrawing, diffed: afterDrawing, unmount: atEnd } = options;
options.__r = (node) => {
  beforeDrawing?.(node);
  const { __c: component } = node;
  reader = component && (component.tell ??= Object.assign(() => component.forceUpdate(), { read: new Set() }));
};
options.diffed = (node) => {
  reader = undefined;
  afterDrawing?.(node);
};
options.unmount = (node) => {
  const tell = node.__c?.tell;
  tell?.read.forEach((readers) => readers.delete(tell));
  atEnd?.(node);
};
