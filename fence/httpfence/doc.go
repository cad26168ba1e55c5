// Package httpfence guards HTTP services, and sends the tokens that they check.
// See package fence for the rule and the two verbs.
//
//   - [NewHandler] goes in front of a service, over a fence.Gate or any other
//     fence.Marks, and refuses requests whose token is stale.
//   - [Transport] sends the token of the lease in a request's context.
//
// All functions and methods are safe for concurrent use.
package httpfence
