package dashboard

import (
	"log/slog"
	"net/http"

	"github.com/holdfast-locks/holdfast/driver"
)

// Options configure Handler.
type Options struct {
	// Engine has the locks that are shown. Required. Handler does not close it.
	Engine driver.Engine

	// Authorize is asked before each action; nil allows none, and so does an error, whose
	// text is shown.
	Authorize func(*http.Request, Action) error

	// Viewer names who sends a request, as the author of what they do. Default: "dashboard".
	Viewer func(*http.Request) string

	// Logger is where refusals and actions are written. Default: slog.Default.
	Logger *slog.Logger
}

// An Action is what somebody wants to do to a lock or a do-once key.
type Action struct {
	Kind   ActionKind
	Name   string
	Token  uint64 // of Break: the lease that was seen
	Reason string // of Break and Hold
}

// An ActionKind says what is to be done.
type ActionKind string

// The actions.
const (
	Break   ActionKind = "break"   // take a lock away
	Hold    ActionKind = "hold"    // hold a lock for a person
	Release ActionKind = "release" // give that back
	Forget  ActionKind = "forget"  // forget the result of a do-once key
)
