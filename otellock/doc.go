// Package otellock tells OpenTelemetry what happens to locks: spans and metrics. It
// needs the API only.
package otellock
