// Package dashboard is a page that shows who holds which lock, who waits for it, and why.
//
// # What
//
// holdfast serve has the page at its root. A program mounts it on an engine of its own,
// under any prefix. The page uses the JSON API of package httplock/server, and nothing
// else; it loads nothing from another host.
//
// # Example
//
// [Files] has what the page is made of.
//
// # Guarantees
//
// Whoever looks changes nothing. There are no actions unless Options.Authorize allows
// them.
//
// # What is not promised
//
// What is shown is a moment old. The page says when it has lost sight of the store.
//
// # Errors
//
// Refusals are application/problem+json, as those of package httplock/server.
//
// # Testing
//
// The engine may be one of package memlock.
package dashboard
