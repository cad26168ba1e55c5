// Package oteltest has the tests of otellock that need OpenTelemetry's SDK. The module of
// otellock does not require the SDK: its users choose their own.
package oteltest
