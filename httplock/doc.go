// Package httplock is an engine for locks that a holdfast server keeps, over HTTP.
//
// # What
//
// All that the engine of the server can do, for programs that reach the server and not
// the store: the same locks, deadlines, queues and tokens.
//
// # Example
//
//	engine, err := httplock.Open(ctx, "http://127.0.0.1:7420")
//	if err != nil {
//		return err
//	}
//	client, err := holdfast.New(engine, nil)
//
// # Guarantees
//
// It passes the conformance suite. A failure to connect, and a 429 or 503 of the server,
// say that nothing was done; whatever else is not the server's answer leaves that open.
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
// Tokens are those of the store.
//
// # Errors
//
// Those of package driver.
//
// # Testing
//
// The handler of package httplock/server on memlock needs nothing but net/http/httptest.
package httplock
