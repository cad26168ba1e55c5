// Package tell delivers events to an Observer without making their sender wait for it. It logs
// panics, blocked Observers and dropped events.
package tell
