// Package oteltest has the tests of otellock that need OpenTelemetry's SDK, which the
// module of otellock does not ask for: its users choose their own.
package oteltest
