// Package server serves the locks of one engine over HTTP, to engines of package httplock
// and to programs in any language.
//
// # What
//
// An http.Handler with two APIs. The one below /v1/driver is for the engine of package
// httplock. The rest of /v1 is for people: leases, streams that hold them, do-once work,
// one-time tokens, and views of locks, in JSON. The command
// holdfast serve runs it, and any program can mount it.
//
// # Example
//
//	s, err := server.New(engine, nil)
//	if err != nil {
//		return err
//	}
//	err = http.ListenAndServe("127.0.0.1:7420", s)
//
// # Guarantees
//
// Any number of servers may be open on one store. A client may repeat a request at any of
// them. The store decides, as it does for its direct clients.
//
// # What is not promised
//
// A server adds a hop. While it is away, its clients cannot reach the store: give them
// the addresses of several.
//
// # Clocks
//
// Only durations go over the wire. A client counts the deadline of its lease from the time
// before it sent the request.
//
// # Fencing
//
// Each grant comes with its fencing token. There is no request that checks one: such a
// check could not be one step with the write that follows. The resource checks it.
//
// # Errors
//
// Every refusal is a problem (RFC 9457) with a code for programs. After 503 and 429
// of this server nothing was done.
//
// # Testing
//
// Package memlock has an engine that needs no server.
package server
