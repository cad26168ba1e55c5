// Package promlock counts for Prometheus what happens to locks, do-once work,
// one-time tokens, guarded resources and schedules.
//
// # What
//
// [Metrics] are an Observer and a prometheus.Collector. One value counts for any number of clients,
// services and guards. docs/metrics.md has every metric with its type, unit and labels;
// grafana/holdfast.json is a dashboard, and alerts/holdfast.rules.yml has alert rules with what to
// do.
//
// # Example
//
//	metrics := promlock.New(&promlock.Options{NameLabel: promlock.FoldNames})
//	registry.MustRegister(metrics)
//	client, err := holdfast.New(engine, &holdfast.Options{Observer: metrics.Observe})
//
// # Guarantees
//
//   - A gauge goes down whatever ends a wait or a possession: a release, a loss, a
//     lease that was left, a panic of the work, the Close of the client.
//   - The number of series is bounded, whatever names the locks have: the label name
//     has [MaxNames] values at most, and nothing else has a value from outside. Without
//     a NameLabel there is no such label.
//   - No acquire, renewal, loss or release waits for it, even during a scrape.
//   - The sum of a counter over all its labels is the number of events.
//
// # What is not promised
//
// An Observer receives events a little later, so a gauge may be late by microseconds; and
// a program that dies loses the counts that were not scraped. A process counts the events
// of its own clients: only the store knows all holders of a lock, and Client.Inspect and
// Client.List read them there.
//
// Names may reveal more about people than a system of metrics should know. [FoldNames]
// removes numbers and identifiers, and leaves words unchanged: an e-mail address in a name
// stays. Use a NameLabel of your own to decide.
//
// # Clocks
//
// Durations are by the monotonic clock of this process. No time of the store or of
// another host is in them.
//
// # Fencing
//
// holdfast_fence_claims_total with outcome "refused" counts the writes of stale holders
// that a guard has kept from a resource. It needs the guard's Observer; see package
// fence.
//
// # Errors
//
// New cannot fail. Registering two Metrics in one registry fails, as with any Collector: use one
// for all clients, or prometheus.WrapRegistererWith.
//
// # Testing
//
// Close the client first: it waits until all events are delivered. Then
// testutil.CollectAndCompare of the client library compares the metrics with a text.
package promlock
