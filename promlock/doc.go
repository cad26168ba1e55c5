// Package promlock counts for Prometheus what happens to locks.
package promlock
