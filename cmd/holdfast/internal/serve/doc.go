// Package serve runs a server of package httplock/server: its sockets, TLS, ID tokens,
// health checks, metrics, and a shutdown that releases no lock.
package serve
