// Package httpfence guards HTTP services, and sends the tokens that they check.
// See package fence for the rule and the two verbs.
//
// # What
//
//   - [NewHandler] goes in front of a service, over a fence.Gate or any other
//     fence.Marks, and refuses requests whose token is stale.
//   - [Transport] sends the token of the lease in a request's context.
//
// # Example
//
//	guarded := httpfence.NewHandler(service, gate.Marks(), nil) // the service's side
//	client := &http.Client{Transport: &httpfence.Transport{}}   // the holder's side
//
// # Guarantees
//
// A request with a stale token does not reach the service, nor does a write without one.
// Over the marks of a fence.Gate no newer holder is accepted until the service has
// answered. The token of the lease in a request's context goes along with it, through
// redirects to the same host only.
//
// # What is not promised
//
// Over other marks the check and what the service then writes are two steps: between them a
// newer holder may come. There let the database check again, as package sqlfence does. A
// read without a token is passed on.
//
// # Clocks
//
// None is read.
//
// # Errors
//
// The handler answers with application/problem+json (RFC 9457); [NewHandler] has the codes.
//
// # Testing
//
// net/http/httptest and a fence.Gate need nothing else.
//
// # Concurrency
//
// All functions and methods are safe for concurrent use.
package httpfence
