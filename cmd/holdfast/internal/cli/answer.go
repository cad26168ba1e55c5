package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-locks/holdfast/internal/codes"
	"github.com/holdfast-locks/holdfast/wire"
)

// withJSON gives a command the flag --json.
func (a *app) withJSON(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&a.json, "json", false, "print JSON")
	return cmd
}

// answer prints the result: v as JSON, or text.
func (a *app) answer(v any, text string) error {
	a.answered = true
	var err error
	if a.json {
		e := show.JSON(a.stdout)
		e.SetIndent("", "  ")
		err = e.Encode(v)
	} else {
		_, err = io.WriteString(a.stdout, text)
	}
	return exit.With(exit.Output, err)
}

// answerWith is answer followed by an exit with status, if printing succeeded.
func (a *app) answerWith(status int, v any, text string) error {
	if err := a.answer(v, text); err != nil || status == exit.OK {
		return err
	}
	return &exit.Error{Status: status}
}

// report prints why the program fails: a line on standard error and, with --json and no output
// yet, an object on standard output too.
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
	// If this fails, status and message still report the error.
	_ = a.answer(wire.Failure{Error: codeOf(e), Message: message, Status: e.Status}, "")
}

// words returns the message of an error.
func (a *app) words(e *exit.Error) string {
	if !e.Engine {
		return strings.TrimPrefix(e.Err.Error(), "holdfast: ")
	}
	if held, ok := errors.AsType[*holdfast.HeldError](e.Err); ok && isEndless(held.Foreign, held.ExpiresIn) {
		e = &exit.Error{Err: fmt.Errorf("%w: %s", e.Err, endless)}
	}
	f := show.Failure{Verb: a.verb, Subject: a.subject, Opening: e.Opening, Err: e.Err}
	if a.chosen && a.choiceErr == nil {
		f.Store = a.choice.Public()
		if !a.choice.ByFlag {
			f.Source = a.choice.Source
		}
	}
	return f.String()
}

// endless explains what to do about a foreign lock without an expiry.
const endless = "it may be data of another program: then use another name, or ?prefix= in the URL of the store; " +
	"if it is a lock, only its owner can release it"

func isEndless(foreign bool, expiresIn time.Duration) bool {
	return foreign && expiresIn == holdfast.Never
}

// meantFlags maps flags of other programs to ours.
var meantFlags = map[string]string{
	"max": "slots", "limit": "slots", "semaphore": "slots", "count": "slots", "expire": "ttl", "lease": "ttl", "lock-timeout": "wait",
	"max-wait": "wait", "message": "reason", "port": "listen", "address": "listen", "bind": "listen", "url": "store", "server": "store", "redis": "store",
	"duration": "for",
}

// notUnderstood returns an error of cobra, with the name of the command that it is about.
func notUnderstood(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if ours := cmd.Flag(meantFlags[unknown.GetSpecifiedName()]); ours != nil {
			err = fmt.Errorf("%w; did you mean --%s?", err, ours.Name)
		}
	}
	if !cmd.HasParent() {
		return fmt.Errorf("%w (see holdfast --help)", err)
	}
	return fmt.Errorf("%s: %w (see %s --help)", verbOf(cmd), err, cmd.CommandPath())
}

// subjectOf returns the first argument in quotes, for messages. Commands with several names
// set the subject themselves.
func subjectOf(args []string) string {
	if len(args) == 0 || args[0] == "" || args[0] == "-" {
		return ""
	}
	return fmt.Sprintf("%q", args[0])
}

// asksForJSON reports whether --json was given, even after a wrong flag.
func (a *app) asksForJSON() bool {
	args := a.args
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return a.json || slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
}

// codeOf returns the code of an error for JSON: from the table, or by its status.
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
