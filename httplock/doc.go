// Package httplock is an engine for locks that a holdfast server keeps, over HTTP.
//
// # What
//
// Programs that reach the server and not the store get all features of the server's
// engine: the same locks, deadlines, queues and tokens.
//
// # Example
//
//	engine, err := httplock.Open(ctx, "http://127.0.0.1:7420", nil)
//	if err != nil {
//		return err
//	}
//	client, err := holdfast.New(engine, nil)
//
// # Guarantees
//
// It passes the conformance suite. After a failure to connect, and after a 429 or 503 of the
// server, nothing was done. After any other failure the outcome is unknown.
//
// # What is not promised
//
// While no server answers, nothing can be acquired, and leases end at their deadlines.
//
// # Clocks
//
// Only durations go over the wire.
//
// # Fencing
//
// The store makes the tokens.
//
// # Errors
//
// The errors of package driver.
//
// # Testing
//
// Serve the handler of package httplock/server, on memlock, with net/http/httptest.
package httplock
