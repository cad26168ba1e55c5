// Package stores opens every store that holdfast has an engine for by its URL, as
// the command does.
package stores
