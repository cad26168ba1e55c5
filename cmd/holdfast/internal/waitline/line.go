// Package waitline tells the user what a process waits for: on a terminal in one
// line that is rewritten in place, elsewhere in lines of their own.
package waitline

import (
	"os"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/linewriter"
)

const (
	// silence is how long a wait may last before the terminal shows it.
	silence = time.Second
	// count is how often the times are counted on.
	count = time.Second
	// patience is how long End and Ctrl-Z wait for a terminal that takes nothing.
	patience = 100 * time.Millisecond
)

// A Terminal is where the line is drawn; see package terminal.
type Terminal interface {
	Ours() bool
	Columns() int
	Catch(signals chan<- os.Signal)
	Release(signals chan<- os.Signal)
	IsStop(s os.Signal) bool
	Stop(signals chan<- os.Signal)
}

// A Line is what the user sees of one wait. Its methods may be called concurrently. A
// nil Line tells nothing.
type Line struct {
	out     *linewriter.Writer
	say     func(text string) // writes a line of its own, through out
	screen  Terminal          // nil: there is none
	verbose bool

	mu       sync.Mutex // guards the rest
	state    State
	at       time.Time // when it was so
	begun    bool
	told     bool // in a line of its own
	over     bool
	changed  chan struct{} // has room for one
	end      chan struct{} // closed by End
	finished chan struct{} // closed when the line is gone
}

// New returns a Line that says what is to be said in lines of their own with say,
// which must write through out. If screen is not nil, it draws there instead, through
// out, after a second: it says nothing while the screen is somebody else's, unless
// verbose. Elsewhere it tells that the wait begins and, if verbose, of each change.
// The caller must call End.
func New(out *linewriter.Writer, say func(text string), screen Terminal, verbose bool) *Line {
	return &Line{
		out: out, say: say, screen: screen, verbose: verbose,
		changed: make(chan struct{}, 1), end: make(chan struct{}), finished: make(chan struct{}),
	}
}

// Update tells how the wait stands now. It never waits for a terminal: it is for
// holdfast.AcquireOptions.OnWait.
func (l *Line) Update(s State) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	l.state, l.at = s, time.Now()
	switch {
	case l.screen == nil:
		l.tellLocked()
	case !l.begun:
		go l.draw() // ends with End
	default:
		select {
		case l.changed <- struct{}{}:
		default:
		}
	}
	l.begun = true
}

// tellLocked tells of the state in a line of its own, if the user wants to know. That
// the store does not answer is told by whoever notices it.
func (l *Line) tellLocked() {
	if l.state.Outage == nil && (l.verbose || !l.told) {
		l.told = true
		l.say(Text(l.state))
	}
}

// End says that the wait is over. When it returns the line is gone, unless the
// terminal takes nothing. It must be called before anything is started that writes
// there.
func (l *Line) End() {
	if l == nil {
		return
	}
	l.mu.Lock()
	began := l.begun && l.screen != nil
	if !l.over {
		l.over = true
		close(l.end)
	}
	l.mu.Unlock()
	if began {
		<-l.finished
	}
}

// draw keeps the line on the screen until End.
func (l *Line) draw() {
	defer close(l.finished)
	select {
	case <-time.After(silence):
	case <-l.end:
		return
	}
	signals := make(chan os.Signal, 4)
	l.screen.Catch(signals)
	defer l.screen.Release(signals)
	ticker := time.NewTicker(count)
	defer ticker.Stop()
	l.tellInBackground()
	for {
		l.show()
		select {
		case <-ticker.C:
		case <-l.changed:
			l.tellInBackground()
		case s := <-signals:
			l.heed(s, signals)
		case <-l.end:
			l.clear()
			select {
			case s := <-signals: // in the very last moment
				l.heed(s, signals)
			default:
			}
			return
		}
	}
}

// show draws the line as it is now.
func (l *Line) show() {
	l.mu.Lock()
	s := after(l.state, time.Since(l.at))
	l.mu.Unlock()
	l.out.Show(Fit(Text(s), l.screen.Columns()-1))
}

func (l *Line) clear() {
	l.out.Show("")
	l.out.Flush(patience)
}

// heed stops this process for Ctrl-Z, when the line is gone.
func (l *Line) heed(s os.Signal, signals chan<- os.Signal) {
	if l.screen.IsStop(s) {
		l.clear()
		l.screen.Stop(signals)
	}
}

// tellInBackground tells of the state where the line cannot be drawn.
func (l *Line) tellInBackground() {
	if l.verbose && !l.screen.Ours() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.tellLocked()
	}
}
