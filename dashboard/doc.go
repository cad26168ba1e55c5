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
//	d, err := dashboard.New(&dashboard.Options{Engine: engine})
//	if err != nil {
//		return err
//	}
//	mux.Handle("/ops/locks/", onlyOperators(http.StripPrefix("/ops/locks", d)))
//
// # Guarantees
//
// Looking changes nothing. There are no actions unless Options.Authorize allows them. The
// page's API has no other part that changes something: no leases, no one-time tokens, and
// no results of do-once work.
//
// # What is not promised
//
// The page shows the state of a moment ago, and a warning when the store does not answer.
// The program decides which users see the page, by middleware of its own in front of it.
//
// # Errors
//
// Refusals are application/problem+json, as in package httplock/server.
//
// # Testing
//
// The engine may be one of package memlock.
package dashboard
