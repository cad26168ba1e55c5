package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/store"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/storeurl"
)

const (
	// closeTimeout bounds how long the program waits at its end for requests that must be
	// cancelled. awayTimeout is the bound while the store does not answer.
	closeTimeout = 3 * time.Second
	awayTimeout  = 100 * time.Millisecond

	// openPause is the time between two attempts to open a store that does not answer.
	openPause = 500 * time.Millisecond
)

// A session is the use of a store by one command.
type session struct {
	*app
	quiet   bool                              // no messages
	wait    time.Duration                     // bounds the wait for the store, and then for the lock; 0: no wait
	holder  holdfast.Holder                   // what others see of this holder; the client adds host, user and process
	wrap    func(driver.Engine) driver.Engine // changes the engine; may be nil
	observe holdfast.Observer                 // may be nil
	onAway  func(time.Time, error)            // called with the start of the wait when the store does not answer; may be nil
	away    atomic.Bool                       // the store does not answer, and the user knows
	endless string                            // the name for which sayForeign has warned the user
}

func (a *app) session() *session { return &session{app: a} }

// ask opens the store, calls f and closes everything. An error of f without a status gets
// the status of the client's errors.
func (a *app) ask(cmd *cobra.Command, f func(context.Context, *holdfast.Client) error) error {
	return a.session().ask(cmd.Context(), f)
}

func (s *session) ask(ctx context.Context, f func(context.Context, *holdfast.Client) error) error {
	engine, err := s.open(ctx)
	if err != nil {
		return err
	}
	return s.use(ctx, engine, f)
}

// use is ask for a store that is already open.
func (s *session) use(ctx context.Context, engine driver.Engine, f func(context.Context, *holdfast.Client) error) error {
	if s.wrap != nil {
		engine = s.wrap(engine)
	}
	quiet := slog.New(slog.DiscardHandler) // the command reports what matters itself
	client, err := holdfast.New(engine, &holdfast.Options{Observer: s.observe, Logger: quiet, Holder: s.holder})
	if err != nil {
		engine.Close()
		return exit.FromStore(err)
	}
	err = exit.FromStore(f(ctx, client))
	limit := closeLimit(err)
	if s.away.Load() { // nothing can be cancelled now
		limit = min(limit, awayTimeout)
	}
	closeWithin(limit, client)
	return err
}

// closeWithin closes a client. If that takes longer than limit, it goes on until the program
// ends; what remains in the store ends with its TTL.
func closeWithin(limit time.Duration, client *holdfast.Client) {
	if limit <= 0 {
		return
	}
	closed := make(chan struct{})
	go func() { // ends soon after the limit, or with the program
		defer close(closed)
		_ = client.Close()
	}()
	select {
	case <-closed:
	case <-time.After(limit):
	}
}

// closeLimit returns how long closing the client may take after err. If it is 0 or less, the
// client must not be closed: there is no time, or closing would release a lock that must stay
// held.
func closeLimit(err error) time.Duration {
	switch e, ok := errors.AsType[*exit.Error](err); {
	case !ok:
	case e.KeepLock:
		return 0
	case !e.EndBy.IsZero():
		return time.Until(e.EndBy)
	case e.Status == exit.Lost:
		return awayTimeout
	case e.Status > exit.Signal(0): // the sender is waiting
		return time.Second
	}
	return closeTimeout
}

// endSignals ask a command to end.
var endSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

// untilSignal calls f. A signal that asks to end cancels the context of f, and determines the exit
// status. A second signal ends the program.
func untilSignal(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	for _, s := range endSignals {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	go func() { // ends with the first signal, or with the program
		s := <-signals
		signal.Stop(signals)
		cancel(&exit.Error{Status: exit.Signal(s.(syscall.Signal))})
	}()
	err := f(ctx)
	return cmp.Or(context.Cause(ctx), err)
}

// choose returns the store that this run uses. It opens nothing, and reads each file once.
func (a *app) choose() (store.Choice, error) {
	if !a.chosen {
		a.chosen = true
		a.choice, a.choiceErr = a.asked.Resolve()
	}
	switch {
	case errors.Is(a.choiceErr, store.ErrBoth):
		return a.choice, usage("%s: %w", a.verb, a.choiceErr)
	case a.choiceErr != nil:
		return a.choice, openError(a.choiceErr)
	}
	return a.choice, nil
}

// endsWithUs reports whether a store is in the memory of this process.
func endsWithUs(c store.Choice) bool { return strings.HasPrefix(strings.ToLower(c.URL), "memory:") }

// defaultTTL sets a --ttl that was not given to the value of a configuration file. open
// reports a file that cannot be read: wrong arguments come first.
func (a *app) defaultTTL(cmd *cobra.Command, ttl *time.Duration) {
	if cmd.Flags().Changed("ttl") {
		return
	}
	if choice, err := a.choose(); err == nil && choice.TTL > 0 {
		*ttl = choice.TTL
	}
}

// open opens the store that the user wants, and sets app.choice to it.
func (s *session) open(ctx context.Context) (driver.Engine, error) {
	choice, err := s.choose()
	if err == nil {
		err = s.checkNested(ctx, choice)
	}
	if err != nil {
		return nil, err
	}
	if choice.ByFlag && storeurl.HasPassword(s.asked.Store) && !s.quiet {
		s.say("every user of this host can see the password in --store (ps): put the URL into a file, and name it with --store-file")
	}
	engine, err := s.await(ctx, choice)
	if err != nil {
		return nil, openError(err)
	}
	s.newStore = store.IsNew(engine)
	return engine, nil
}

// sayStore names the open store, and the setting that has chosen it.
func (a *app) sayStore() {
	made := ""
	if a.newStore {
		made = ", a new file"
	}
	a.say("the store is %s (%s)%s", a.choice.Public(), a.choice.Source, made)
}

// openError returns the error of a request that is about the store as a whole. Then ErrInvalid is
// about the configuration, not about an argument.
func openError(err error) error {
	return &exit.Error{Status: openStatus(err), Err: err, Engine: true, Opening: true}
}

func openStatus(err error) int {
	if errors.Is(err, driver.ErrInvalid) {
		return exit.Config
	}
	return exit.StatusOf(err)
}

// await opens the store. With --wait it waits for a store that does not answer, and subtracts
// that time from s.wait, so that one limit bounds both waits. The first attempt has its full
// time, however short the wait is.
func (s *session) await(ctx context.Context, choice store.Choice) (driver.Engine, error) {
	if s.wait == 0 {
		return choice.Open(ctx)
	}
	began := time.Now()
	waiting, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	for attempt := ctx; ; attempt = waiting {
		engine, err := choice.Open(attempt)
		if err == nil {
			s.storeIsBack(time.Since(began))
			s.wait = max(s.wait-time.Since(began), time.Millisecond)
			return engine, nil
		}
		cutShort := errors.Is(err, context.DeadlineExceeded) && waiting.Err() != nil
		if !errors.Is(err, driver.ErrUnavailable) && !cutShort || ctx.Err() != nil {
			return nil, err
		}
		if waiting.Err() == nil && s.storeIsAway(err) && s.onAway != nil {
			s.onAway(began, err)
		}
		select {
		case <-time.After(openPause):
		case <-waiting.Done():
			if !errors.Is(err, driver.ErrUnavailable) { // the limit cut the attempt short
				err = fmt.Errorf("%w: no answer within %s", driver.ErrUnavailable, s.wait)
			}
			return nil, err
		}
	}
}

// storeIsAway tells the user, once per outage, that the store does not answer. It returns whether
// it is the first call of this outage.
func (s *session) storeIsAway(err error) bool {
	if s.away.Swap(true) {
		return false
	}
	if !s.quiet {
		s.say("still waiting: %s", s.words(&exit.Error{Err: err, Engine: true}))
	}
	return true
}

// storeIsBack reports that the store answers again.
func (s *session) storeIsBack(after time.Duration) {
	if s.away.Swap(false) && !s.quiet {
		s.say("the store answers again, after %s", after.Round(100*time.Millisecond))
	}
}

// sayForeign warns a waiting user, once, that the wait may never end.
func (s *session) sayForeign(w holdfast.WaitState) {
	if !isEndless(w.Foreign, w.ExpiresIn) || s.quiet || s.endless == w.Name {
		return
	}
	s.endless = w.Name
	s.say("%s %q: held by a client that is not holdfast, with no expiry: %s", s.verb, w.Name, endless)
}

// waitLine returns the line that shows a wait, on a terminal or elsewhere; nil if quiet.
// The caller must call its End when the wait has ended, and before starting anything that
// writes to the terminal.
func (a *app) waitLine(quiet, verbose bool) *show.WaitLine {
	if quiet {
		return nil
	}
	return show.NewWaitLine(a.messages, func(text string) { a.say("%s", text) }, verbose)
}
