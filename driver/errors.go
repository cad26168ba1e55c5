package driver

import (
	"errors"

	"github.com/holdfast-locks/holdfast/internal/sentinel"
)

// The definite errors: the request was not carried out, and the store is
// unchanged. Engines must wrap them with a text that describes what happened and
// what to do, without the name of the lock, which package holdfast adds.
var (
	// ErrLost: the lease is not live. It expired, was released, or never was.
	ErrLost = sentinel.ErrLost

	// ErrUnavailable: the store could not be reached, or refuses to serve for
	// now. The same request may succeed later.
	ErrUnavailable = errors.New("store is unavailable")

	// ErrInvalid: the request or the configuration is wrong in itself.
	ErrInvalid = sentinel.ErrInvalid

	// ErrUnsupported: this engine cannot carry out the request.
	ErrUnsupported = errors.New("not supported by this engine")

	// ErrPermission: the store refuses the client, or does not know it.
	ErrPermission = errors.New("not permitted")

	// ErrKindMismatch: what the store has under this name is not a lock of
	// the requested kind (INVARIANT I12).
	ErrKindMismatch = errors.New("kind mismatch")

	// ErrClosed: the engine or the client was closed. An error that wraps ErrUnavailable too
	// means that this engine has lost its store, such as a file that was deleted: a new engine
	// may serve.
	ErrClosed = errors.New("closed")
)

// ErrOutcomeUnknown: the store may or may not have carried the request out.
// Package holdfast returns it for an error that is not definite; an engine need
// not return it.
var ErrOutcomeUnknown = errors.New("outcome is unknown")

// definite has the definite errors. All but the last are permanent.
var definite = []error{ErrLost, ErrInvalid, ErrUnsupported, ErrPermission, ErrKindMismatch, ErrClosed, ErrUnavailable}

// Class returns the definite error that err wraps. It returns nil if there is
// none: then the request may or may not have been carried out. If err wraps
// several, Class prefers a permanent one.
func Class(err error) error {
	for _, class := range definite {
		if errors.Is(err, class) {
			return class
		}
	}
	return nil
}

// Definite reports whether err means that the request was not carried out
// (INVARIANT I10).
func Definite(err error) bool { return Class(err) != nil }

// Permanent reports whether err is definite and the same request would fail
// with it again.
func Permanent(err error) bool {
	class := Class(err)
	return class != nil && class != ErrUnavailable
}
