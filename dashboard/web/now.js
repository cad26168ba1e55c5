// The instant that all views use, on the scale of performance.now(). It stands still while the
// shown state is old, because the page does not know what happened since.
let stopped;

export const now = () => stopped ?? performance.now();

// stopAt stops the time at an instant; without one, the time runs again.
export function stopAt(instant) { stopped = instant; }
