// Signals: a component that has read one is drawn anew when its value changes, and so is an
// effect run again.
import { options } from "./lib.js";

let reader; // a function with `read`: the sets of readers that it is in

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

// effect runs f now, and whenever a signal has changed that it has read.
export function effect(f) {
  const run = () => use(run, f);
  run.read = new Set();
  run();
}

let waiting; // those to whom a batch has to tell something

// batch runs f, and tells of its changes when it is done.
export function batch(f) {
  waiting = new Set();
  f();
  const all = waiting;
  waiting = undefined;
  for (const tell of all) tell();
}

// Preact calls these around the drawing of a component, and at its end.
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
