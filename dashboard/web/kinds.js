// The kinds of events, by what they mean for a lease.
export const begins = ["acquired", "handed_over"];
export const losses = ["lost", "expired", "broken"];
export const ends = ["released", "completed", ...losses];
