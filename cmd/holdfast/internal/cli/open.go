package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/store"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/stores"
)

// openPause is the time between two attempts to open a store that is not there.
const openPause = 500 * time.Millisecond

// choose returns the store that counts for this run of the program. It opens
// nothing, and reads each file once.
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

// defaultTTL sets a --ttl that was not given to what a configuration file says. If
// that cannot be read, open says so: first comes what is wrong with the arguments.
func (a *app) defaultTTL(cmd *cobra.Command, ttl *time.Duration) {
	if cmd.Flags().Changed("ttl") {
		return
	}
	if choice, err := a.choose(); err == nil && choice.TTL > 0 {
		*ttl = choice.TTL
	}
}

// open opens the store that the user wants.
func (a *app) open(ctx context.Context) (driver.Engine, store.Choice, error) {
	choice, err := a.choose()
	if err == nil {
		err = a.checkNested(ctx, choice)
	}
	if err != nil {
		return nil, choice, err
	}
	if choice.ByFlag && stores.HasPassword(a.asked.Store) && !a.quiet {
		a.say("everybody on this host can see the password in --store (ps): put the URL into a file, and name that with --store-file")
	}
	engine, err := a.await(ctx, choice)
	if err != nil {
		return nil, choice, openError(err)
	}
	a.newStore = store.IsNew(engine)
	return engine, choice, nil
}

// sayStore tells which store it is, and who has named it. It must be open.
func (a *app) sayStore() {
	made := ""
	if a.newStore {
		made = ", a new file"
	}
	a.say("the store is %s (%s)%s", a.choice.Public(), a.choice.Source, made)
}

// openError returns the error of what was to be done with a store as a whole:
// what is invalid then is the configuration, not an argument.
func openError(err error) error {
	return &exit.Error{Status: openStatus(err), Err: err, Engine: true, Opening: true}
}

func openStatus(err error) int {
	if errors.Is(err, driver.ErrInvalid) {
		return exit.Config
	}
	return exit.StatusOf(err)
}

// await opens the store. With --wait it waits for a store that is not
// there, and takes off a.wait what that took: one limit bounds both waits. The
// first attempt has its own time, however short the wait is.
func (a *app) await(ctx context.Context, choice store.Choice) (driver.Engine, error) {
	if a.wait == 0 {
		return choice.Open(ctx)
	}
	began := time.Now()
	waiting, cancel := context.WithTimeout(ctx, a.wait)
	defer cancel()
	for attempt := ctx; ; attempt = waiting {
		engine, err := choice.Open(attempt)
		if err == nil {
			a.storeIsBack(time.Since(began))
			a.wait = max(a.wait-time.Since(began), time.Millisecond)
			return engine, nil
		}
		cutShort := errors.Is(err, context.DeadlineExceeded) && waiting.Err() != nil
		if !errors.Is(err, driver.ErrUnavailable) && !cutShort || ctx.Err() != nil {
			return nil, err
		}
		if a.storeIsAway(err) && a.onAway != nil {
			a.onAway(began, err)
		}
		select {
		case <-time.After(openPause):
		case <-waiting.Done():
			if !errors.Is(err, driver.ErrUnavailable) { // the limit cut the attempt short
				err = fmt.Errorf("%w: no answer within %s", driver.ErrUnavailable, a.wait)
			}
			return nil, err
		}
	}
}

// storeIsAway tells the user, once, that the store does not answer. It reports whether
// that is news.
func (a *app) storeIsAway(err error) bool {
	if a.away.Swap(true) {
		return false
	}
	if !a.quiet {
		a.say("still waiting: %s", a.words(&exit.Error{Err: err, Engine: true}))
	}
	return true
}

// storeIsBack tells the user that it does again.
func (a *app) storeIsBack(after time.Duration) {
	if a.away.Swap(false) && !a.quiet {
		a.say("the store answers again, after %s", after.Round(100*time.Millisecond))
	}
}
