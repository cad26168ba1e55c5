package cli

import (
	"io"
	"os"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/linewriter"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/terminal"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/waitline"
)

// speakTo has messages written to stderr, with a line below them if that is a
// terminal: name is the value of TERM.
func (a *app) speakTo(stderr io.Writer, name string) {
	if f, ok := stderr.(*os.File); ok {
		a.screen = terminal.Of(f, name)
	}
	if a.screen == nil {
		a.messages = linewriter.New(stderr)
		return
	}
	a.messages = linewriter.NewTerminal(stderr, a.screen.Ours)
}

// waitLine returns what tells the user of a wait, on a terminal or elsewhere: its
// Update is for holdfast.AcquireOptions.OnWait. With quiet it tells nothing. The
// caller must call its End before anything is started that writes to the terminal,
// and when the wait is over.
func (a *app) waitLine(quiet, verbose bool) *waitline.Line {
	if quiet {
		return nil
	}
	say := func(text string) { a.say("%s", text) }
	if a.screen == nil {
		return waitline.New(a.messages, say, nil, verbose)
	}
	return waitline.New(a.messages, say, a.screen, verbose)
}
