//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/keeper"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/storeurl"
)

// How long a command waits for the process that keeps its lease. answerTime is a little longer
// than a request of the library waits for the store.
const (
	answerTime = 8 * time.Second
	promptTime = 2 * time.Second // for requests that do not reach the store
)

// A ticket is a lease that the environment or a file names, for one command.
type ticket struct {
	verb string // the command, for messages
	keeper.Ticket
}

// ticket reads the environment. Without a lease in it the error has status 78.
func (a *app) ticket(verb string) (ticket, error) {
	t := ticket{verb, keeper.Ticket{
		Name: a.getenv("HOLDFAST_NAME"), LeaseID: holdfast.LeaseID(a.getenv("HOLDFAST_LEASE_ID")),
		Socket: a.getenv(keeper.SocketVariable), Store: a.getenv("HOLDFAST_LOCK_STORE"),
	}}
	var err error
	t.Token, err = strconv.ParseUint(a.getenv("HOLDFAST_FENCING_TOKEN"), 10, 64)
	switch {
	case t.Name == "" && t.LeaseID == "":
		return t, exit.Errorf(exit.Config, "%s: there is no lease in the environment: it is for commands of holdfast run, "+
			`and for scripts after eval "$(holdfast acquire NAME --pid $$ || echo exit $?)"`, verb)
	case !t.LeaseID.Valid() || err != nil || driver.CheckName(t.Name) != nil:
		return t, exit.Errorf(exit.Config, "%s: HOLDFAST_NAME, HOLDFAST_LEASE_ID or HOLDFAST_FENCING_TOKEN was changed: together they do not name a lease", verb)
	case t.Socket == keeper.None:
		return t, exit.Errorf(exit.Config, "%s %q: the run around this command has no control socket, with -v it says why", verb, t.Name)
	}
	return t, nil
}

// ask sends a request to the process that keeps the lease. It returns false if there is no such
// process, or if the process is gone: then only the store knows the lease.
func (t ticket) ask(ctx context.Context, r keeper.Request) (keeper.Answer, bool, error) {
	if t.Socket == "" {
		return keeper.Answer{}, false, nil
	}
	r.LeaseID = string(t.LeaseID)
	limit := answerTime
	if r.Do == keeper.Check || r.Do == keeper.Heartbeat {
		limit = promptTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answer, err := keeper.Ask(ctx, t.Socket, r)
	switch {
	case errors.Is(err, keeper.ErrGone):
		return answer, false, nil
	case err != nil:
		return answer, true, exit.Errorf(exit.Unavailable, "%s %q: %w", t.verb, t.Name, err)
	case answer.Status != exit.OK:
		return answer, true, exit.With(answer.Status, errors.New(answer.Error))
	}
	return answer, true, nil
}

// askKeeper sends a request about the lease that the environment names.
func (a *app) askKeeper(ctx context.Context, r keeper.Request) (ticket, keeper.Answer, bool, error) {
	t, err := a.ticket(r.Do)
	if err != nil {
		return t, keeper.Answer{}, false, err
	}
	answer, asked, err := t.ask(ctx, r)
	return t, answer, asked, err
}

// inStore opens the store of the lease and calls f.
func (t ticket) inStore(a *app, ctx context.Context, f func(context.Context, *holdfast.Client) error) error {
	return a.session().ask(ctx, func(ctx context.Context, c *holdfast.Client) error {
		if asked := a.choice.Public(); t.Store != "" && !storeurl.Same(asked, t.Store) {
			return exit.Errorf(exit.Config, "%s %q: its lease is in %s, and this command would use %s: name the former with --store, "+
				"or in HOLDFAST_STORE", t.verb, t.Name, t.Store, asked)
		}
		err := f(ctx, c)
		if errors.Is(err, holdfast.ErrLost) {
			return exit.Errorf(exit.Lost, "%s %q: the lease is lost: it has expired, or was released or broken", t.verb, t.Name)
		}
		return err
	})
}

// remaining returns for how long the lease lasts, as the store knows it.
func (t ticket) remaining(a *app, ctx context.Context) (left time.Duration, err error) {
	err = t.inStore(a, ctx, func(ctx context.Context, c *holdfast.Client) error {
		lock, err := c.Inspect(ctx, t.Name)
		if err != nil {
			return err
		}
		for _, h := range lock.Live() {
			if t.LeaseID.Is(h.LeaseID) {
				left = h.ExpiresIn
				return nil
			}
		}
		return holdfast.ErrLost
	})
	return left, err
}

// adopted takes over a lease that was left in the store, for at least ttl, and calls f. Extend
// and release do not depend on the mode, so it may say Shared.
func (t ticket) adopted(a *app, ctx context.Context, ttl time.Duration, f func(*holdfast.Lease) error) error {
	return t.inStore(a, ctx, func(ctx context.Context, c *holdfast.Client) error {
		handle := holdfast.NewHandle(t.Name, t.LeaseID, t.Token, holdfast.Shared)
		lease, err := c.Adopt(ctx, handle, &holdfast.AdoptOptions{TTL: ttl, KeepAlive: holdfast.KeepAliveOff})
		if err != nil {
			return err
		}
		return f(lease)
	})
}

// prolonged makes a lease in the store last for at least ttl, and passes the time left to tell.
func (t ticket) prolonged(a *app, ctx context.Context, ttl time.Duration, tell func(left time.Duration) error) error {
	return t.adopted(a, ctx, ttl, func(lease *holdfast.Lease) error {
		left := lease.Remaining()
		if _, err := lease.Leave(); err != nil {
			return err
		}
		return tell(left)
	})
}

// A leaseView is a lease of this environment as JSON.
type leaseView struct {
	Name        string `json:"name"`
	Held        bool   `json:"held"`
	ExpiresInMS int64  `json:"expires_in_ms"`
}

// tell prints for how long the lease lasts.
func (a *app) tell(t ticket, left time.Duration, quiet bool) error {
	text := fmt.Sprintf("%s is held, for another %s at least\n", show.Plain(t.Name), left.Truncate(100*time.Millisecond))
	if quiet {
		text = ""
	}
	return a.answer(leaseView{t.Name, true, left.Milliseconds()}, text)
}

// checkLease succeeds if the lease of the environment is good: it is held, the process that keeps
// it runs, and at least a third of its TTL is left. Otherwise the script must begin no further
// step.
func (a *app) checkLease(ctx context.Context, quiet bool) error {
	t, err := a.ticket(keeper.Check)
	if err != nil {
		return err
	}
	ttl, err := strconv.ParseInt(a.getenv("HOLDFAST_TTL_MS"), 10, 64)
	if err != nil || ttl <= 0 {
		return exit.Errorf(exit.Config, "check %q: HOLDFAST_TTL_MS was changed: want a time in milliseconds", t.Name)
	}
	enough := time.Duration(ttl) * time.Millisecond / 3
	answer, asked, err := t.ask(ctx, keeper.Request{Do: keeper.Check})
	left := answer.Left()
	switch {
	case errors.Is(err, keeper.ErrSilent):
		if _, lost := t.remaining(a, ctx); exit.Is(lost, exit.Lost) {
			return lost
		}
		return err
	case err != nil:
		return err
	case t.Socket != "" && !asked:
		return exit.Errorf(exit.Lost, "check %q: its keeper is gone: nothing renews the lease", t.Name)
	case !asked:
		if left, err = t.remaining(a, ctx); err != nil {
			return err
		}
	}
	if left < enough {
		return exit.Errorf(exit.Lost, "check %q: the lease is about to end: it has %s left, less than a third of its TTL, and is not renewed", t.Name, left.Truncate(time.Millisecond))
	}
	return a.tell(t, left, quiet)
}

func (a *app) extendCommand() *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "extend DURATION",
		Short: "Make the lease of this script last for at least a time from now",
		Long: `Extend makes the lease in the environment last for at least DURATION from now: seconds, or
a duration such as 5m. It never shortens a lease, and never exceeds --max-hold. It is for
commands of holdfast run --no-keep-alive, and for scripts with holdfast acquire.

The exit status is 0, 78 without a lease in the environment, 79 if the lease is lost. Others:
holdfast --help.`,
		Example: `  holdfast run --no-keep-alive --ttl 5m import -- sh -c 'for f in *.csv; do holdfast extend 5m && ./import "$f" || exit; done'
  holdfast extend 90`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("extend: want one DURATION: seconds, or a duration such as 5m")
			}
			var d time.Duration
			if err := (&durationValue{&d, limits{holdfast.MinTTL, holdfast.MaxTTL}}).Set(args[0]); err != nil {
				return usage("extend %s: %w", args[0], err)
			}
			return a.extend(cmd.Context(), d)
		},
	})
}

func (a *app) extend(ctx context.Context, d time.Duration) error {
	t, answer, asked, err := a.askKeeper(ctx, keeper.Request{Do: keeper.Extend, TTLMS: d.Milliseconds()})
	if err != nil {
		return err
	}
	tell := func(left time.Duration) error { return a.tell(t, left, true) }
	if asked {
		return tell(answer.Left())
	}
	return t.prolonged(a, ctx, d, tell)
}

func (a *app) heartbeatCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "heartbeat",
		Short: "Report that the work under the lease of this script makes progress",
		Long: `Heartbeat is for holdfast run --stall-after D, and holdfast acquire --stall-after D:
they stop a command or script that has not called heartbeat for D. It sends nothing to the
store.

The exit status is 0, 69 if the process that keeps the lease is gone or does not answer, 78
if no process keeps a lease for this script, or 79 if the lease is lost.`,
		Example: `  holdfast run --stall-after 1m import -- sh -c 'for f in *.csv; do ./import "$f" && holdfast heartbeat || exit; done'
  holdfast heartbeat || exit`,
		Args: words(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, _, asked, err := a.askKeeper(cmd.Context(), keeper.Request{Do: keeper.Heartbeat})
			switch {
			case asked || err != nil:
				return err
			case t.Socket == "":
				return exit.Errorf(exit.Config, "heartbeat %q: no process keeps the lease: it ends with its TTL unless holdfast extend renews it", t.Name)
			}
			return exit.Errorf(exit.Unavailable, "heartbeat %q: its keeper is gone: nothing renews the lease", t.Name)
		},
	}
}

// releaseTTL is how long a lease may last after a release that failed.
const releaseTTL = time.Second

func (a *app) releaseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "release [NAME]",
		Short: "Release the lock of this script, or the lock NAME that you hold",
		Long: `Release releases the lease in the environment, from holdfast acquire. Release NAME ends
your holdfast hold on this host.

The exit status is 0 if the lease was live, 78 without a lease in the environment, or if it
belongs to a run, or if you do not hold NAME, 79 if the lease had ended. Others:
holdfast --help.`,
		Example: `  eval "$(holdfast acquire deploy --pid $$ || echo exit $?)"; ./deploy && holdfast release
  holdfast release deploy`,
		Args: names(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.releaseHold(cmd.Context(), args[0])
			}
			return a.release(cmd.Context())
		},
	}
}

func (a *app) release(ctx context.Context) error {
	t, _, asked, err := a.askKeeper(ctx, keeper.Request{Do: keeper.Release})
	if asked || err != nil {
		return err
	}
	return t.adopted(a, ctx, releaseTTL, func(lease *holdfast.Lease) error { return lease.Release(ctx) })
}
