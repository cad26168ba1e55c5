// The instant for all that is shown, of performance.now(). It stands still while what is shown
// is old, because nobody knows what a lease has done since.
let stopped;

export const now = () => stopped ?? performance.now();

// stopAt stops the time at an instant; without one it goes on.
export function stopAt(instant) { stopped = instant; }
