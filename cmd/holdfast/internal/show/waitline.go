package show

import (
	"os"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast"
)

const (
	// lineSilence is how long a wait may last before the terminal shows it.
	lineSilence = time.Second
	// tickEvery is how often the shown times are updated.
	tickEvery = time.Second
	// linePatience is how long End and Ctrl-Z wait for a terminal that does not accept output.
	linePatience = 100 * time.Millisecond
)

// A Screen is what the line is drawn on: a Terminal, except in tests.
type Screen interface {
	Ours() bool
	Columns() int
	Catch(signals chan<- os.Signal)
	Release(signals chan<- os.Signal)
	IsStop(s os.Signal) bool
	Stop(signals chan<- os.Signal)
}

// A WaitLine shows one wait to the user. Its methods may be called concurrently. A nil WaitLine
// shows nothing.
type WaitLine struct {
	out     *Writer
	say     func(text string) // prints a message through out
	verbose bool

	mu       sync.Mutex // guards the rest
	state    holdfast.WaitState
	at       time.Time // when state was set
	begun    bool
	printed  bool // a message was printed
	over     bool
	changed  chan struct{} // has room for one
	end      chan struct{} // closed by End
	finished chan struct{} // closed when the line is gone
}

// NewWaitLine returns a WaitLine that prints messages with say, which must write through out. If
// out has a screen, the WaitLine draws there instead, after a second; while another process has
// the screen, it prints messages only if verbose. Without a screen it prints a message when the
// wait begins and, if verbose, for each change. The caller must call End.
func NewWaitLine(out *Writer, say func(text string), verbose bool) *WaitLine {
	return &WaitLine{
		out: out, say: say, verbose: verbose,
		changed: make(chan struct{}, 1), end: make(chan struct{}), finished: make(chan struct{}),
	}
}

// Update sets the state of the wait. It never waits for a terminal: it is for
// holdfast.AcquireOptions.OnWait.
func (l *WaitLine) Update(s holdfast.WaitState) {
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
	case l.out.screen == nil:
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

// tellLocked prints the state as a message, if the user wants it. The caller that notices an
// outage reports it.
func (l *WaitLine) tellLocked() {
	if l.state.Outage == nil && (l.verbose || !l.printed) {
		l.printed = true
		l.say(WaitText(l.state))
	}
}

// End ends the wait. When it returns, the line is gone, unless the terminal does not accept
// output. The caller must call it before it starts anything that writes to the terminal.
func (l *WaitLine) End() {
	if l == nil {
		return
	}
	l.mu.Lock()
	began := l.begun && l.out.screen != nil
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
func (l *WaitLine) draw() {
	defer close(l.finished)
	select {
	case <-time.After(lineSilence):
	case <-l.end:
		return
	}
	signals := make(chan os.Signal, 4)
	l.out.screen.Catch(signals)
	defer l.out.screen.Release(signals)
	ticker := time.NewTicker(tickEvery)
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
			case s := <-signals: // arrived just before the end
				l.heed(s, signals)
			default:
			}
			return
		}
	}
}

// show draws the line.
func (l *WaitLine) show() {
	l.mu.Lock()
	s := stateAfter(l.state, time.Since(l.at))
	l.mu.Unlock()
	l.out.Show(waitTextOf(s, l.out.screen.Columns()-1))
}

func (l *WaitLine) clear() {
	l.out.Show("")
	l.out.Flush(linePatience)
}

// heed removes the line and stops this process for Ctrl-Z.
func (l *WaitLine) heed(s os.Signal, signals chan<- os.Signal) {
	if l.out.screen.IsStop(s) {
		l.clear()
		l.out.screen.Stop(signals)
	}
}

// tellInBackground prints the state as a message when the line cannot be drawn.
func (l *WaitLine) tellInBackground() {
	if l.verbose && !l.out.screen.Ours() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.tellLocked()
	}
}
