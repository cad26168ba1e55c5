// Package serve runs a server of package httplock/server: the sockets where it listens,
// who may reach them, TLS, how it says how it is, and how it ends without taking a lock
// from anybody.
package serve
