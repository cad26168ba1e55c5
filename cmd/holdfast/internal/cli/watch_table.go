package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/show"
)

// Control sequences. The alternate screen does not scroll, and leaves the first one
// unchanged. A terminal without one draws the table over its present text.
const (
	otherScreen = "\x1b[?1049h"
	firstScreen = "\x1b[?1049l"
	hideCursor  = "\x1b[?25l"
	showCursor  = "\x1b[?25h"
)

// A stage is a terminal on which a table is shown.
type stage struct {
	screen  *show.Terminal
	out     io.Writer
	restore func() // restores the keys; nil if they were not changed
}

// enter takes over the terminal. In the background this stops the process until it is in
// the foreground.
func (s *stage) enter() {
	s.restore, _ = show.Keys(os.Stdin) // Ctrl-C works without this
	_, _ = io.WriteString(s.out, otherScreen+hideCursor)
}

// leave restores the terminal.
func (s *stage) leave() {
	_, _ = io.WriteString(s.out, showCursor+firstScreen)
	if s.restore != nil {
		s.restore()
	}
}

// showTable shows a table until q or a signal ends it.
func showTable(ctx context.Context, screen *show.Terminal, out io.Writer, table *show.LiveTable, rounds show.Rounds) error {
	ctx, cancel := context.WithCancel(ctx)
	signals, seen, failed := make(chan os.Signal, 8), make(chan show.Round), make(chan error, 1)
	signal.Notify(signals, endSignals...)
	screen.Catch(signals)
	defer screen.Release(signals)
	defer cancel()
	go func() { // ends with ctx
		failed <- rounds.Run(ctx, func(r show.Round) {
			select {
			case seen <- r:
			case <-ctx.Done():
			}
		})
	}()
	s := &stage{screen: screen, out: out}
	s.enter()
	defer s.leave() // even if something panics
	var keys <-chan byte
	if s.restore != nil {
		keys = pressed(os.Stdin)
	}
	ticker := time.NewTicker(time.Second) // redraws the times
	defer ticker.Stop()
	for {
		if screen.Ours() {
			if _, err := io.WriteString(out, table.Draw(time.Now(), screen.Columns(), screen.Rows())); err != nil {
				return exit.With(exit.Output, err)
			}
		}
		select {
		case r := <-seen:
			table.Tell(r)
		case <-ticker.C:
		case err := <-failed:
			return err
		case key := <-keys:
			if key == 'q' || key == 'Q' {
				return nil
			}
		case sig := <-signals:
			if over, err := s.heed(sig, signals); over {
				return err
			}
		}
	}
}

// heed handles a signal, and reports whether it ends the table.
func (s *stage) heed(sig os.Signal, signals chan os.Signal) (over bool, _ error) {
	switch {
	case s.screen.IsStop(sig):
		s.leave()
		s.screen.Stop(signals)
		s.enter()
	case sig == os.Interrupt:
		return true, nil
	case slices.Contains(endSignals, sig):
		return true, &exit.Error{Status: exit.Signal(sig.(syscall.Signal))}
	}
	return false, nil // the window has a new size
}

// pressed returns a channel of the keys that the user presses.
func pressed(f *os.File) <-chan byte {
	keys := make(chan byte)
	go func() { // ends with the terminal, or with the program
		buffer := make([]byte, 1)
		for {
			n, err := f.Read(buffer)
			if err != nil {
				return
			}
			if n > 0 {
				keys <- buffer[0]
			}
		}
	}()
	return keys
}
