package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/render"
	"github.com/holdfast-locks/holdfast/wire"
	"github.com/holdfast-locks/holdfast/wire/codes"
)

// report says why the program fails: in a line on standard error and, if it was
// asked for JSON and has not answered, in an object on standard output too.
func (a *app) report(e *exit.Error, cmd *cobra.Command) {
	if e.Err == nil {
		return
	}
	message := a.words(e)
	a.say("%s", message)
	if a.answered || e.Status == exit.Output || cmd.Flags().Lookup("json") == nil || !a.asksForJSON() {
		return
	}
	a.json = true
	// The status and the message tell the same if this fails.
	_ = a.answer(wire.Failure{Error: codeOf(e), Message: message, Status: e.Status}, "")
}

// words returns an error as this command says it.
func (a *app) words(e *exit.Error) string {
	if !e.Engine {
		return strings.TrimPrefix(e.Err.Error(), "holdfast: ")
	}
	if held := (*holdfast.HeldError)(nil); errors.As(e.Err, &held) && isEndless(held.Foreign, held.ExpiresIn) {
		e = &exit.Error{Err: fmt.Errorf("%w: %s", e.Err, endless)}
	}
	f := render.Failure{Verb: a.verb, Subject: a.subject, Opening: e.Opening, Err: e.Err}
	if a.chosen && a.choiceErr == nil {
		f.Store = a.choice.Public()
		if !a.choice.ByFlag {
			f.Source = a.choice.Source
		}
	}
	return f.String()
}

// endless says what to do about something in the way that is not a lock of
// holdfast's, and that has no end.
const endless = "it may be data of another program: then use another name, or ?prefix= in the URL of the store; " +
	"if it is a lock, only who took it can give it back"

func isEndless(foreign bool, expiresIn time.Duration) bool {
	return foreign && expiresIn == holdfast.Never
}

// sayForeign tells those who wait, at once, that they may wait for ever.
func (a *app) sayForeign(s holdfast.WaitState) {
	if !isEndless(s.Foreign, s.ExpiresIn) || a.quiet || a.endless == s.Name {
		return
	}
	a.endless = s.Name
	a.say("%s %q: held by a client that is not holdfast, with no expiry: %s", a.verb, s.Name, endless)
}

// notUnderstood returns what cobra says of arguments, with the command that it
// means.
func notUnderstood(cmd *cobra.Command, err error) error {
	if !cmd.HasParent() {
		return fmt.Errorf("%w (holdfast --help says more)", err)
	}
	return fmt.Errorf("%s: %w (%s --help says more)", verbOf(cmd), err, cmd.CommandPath())
}

// subjectOf returns what the arguments of a command name, in quotes. Those who have
// several names, or others in front, say it themselves.
func subjectOf(args []string) string {
	if len(args) == 0 || args[0] == "" || args[0] == "-" {
		return ""
	}
	return fmt.Sprintf("%q", args[0])
}

// asksForJSON reports whether the arguments ask for JSON, even if something in front
// of that is wrong.
func (a *app) asksForJSON() bool {
	args := a.args
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return a.json || slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
}

// codeOf returns the code of an error as answers have it: that of the table, or of
// what has the same status.
func codeOf(e *exit.Error) string {
	if code := codes.Of(e.Err); code.Name != "" {
		return code.Underscored()
	}
	switch e.Status {
	case exit.Unavailable:
		return "store_unavailable"
	case exit.Busy:
		return "lock_held"
	case exit.NotPermitted:
		return "not_permitted"
	}
	return "invalid"
}
