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
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/control"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/duration"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/render"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/store"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/stores"
)

// How long a command waits for whoever keeps its lease: a store has as long to answer
// as a request of the library waits, and a little more.
const (
	answerTime = 8 * time.Second
	promptTime = 2 * time.Second // if the store is not asked
)

// A possession is the lease that the environment tells of.
type possession struct {
	verb    string
	name    string
	leaseID holdfast.LeaseID
	token   uint64
	socket  string // of whoever keeps it; "" if nobody does, or not any more
	store   string // without credentials
}

// possession reads the environment. Without a lease in it the error has status 78.
func (a *app) possession(verb string) (possession, error) {
	p := possession{
		verb: verb, name: a.asked.Getenv("HOLDFAST_NAME"), leaseID: holdfast.LeaseID(a.asked.Getenv("HOLDFAST_LEASE_ID")),
		socket: a.asked.Getenv(control.Variable), store: a.asked.Getenv("HOLDFAST_LOCK_STORE"),
	}
	var err error
	p.token, err = strconv.ParseUint(a.asked.Getenv("HOLDFAST_FENCING_TOKEN"), 10, 64)
	switch {
	case p.name == "" && p.leaseID == "":
		return p, exit.With(exit.Config, fmt.Errorf("%s: there is no lease in the environment: it is for commands of holdfast run, "+
			`and for scripts after eval "$(holdfast acquire NAME --pid $$ || echo exit $?)"`, verb))
	case !p.leaseID.Valid() || err != nil || driver.CheckName(p.name) != nil:
		return p, exit.With(exit.Config, fmt.Errorf("%s: HOLDFAST_NAME, HOLDFAST_LEASE_ID or HOLDFAST_FENCING_TOKEN was changed: together they do not name a lease", verb))
	case p.socket == control.None:
		return p, exit.With(exit.Config, fmt.Errorf("%s %q: the run around this command has no control socket, with -v it says why", verb, p.name))
	}
	return p, nil
}

// ask asks whoever keeps the lease. Of a keeper that is gone it says so, and
// returns false: only the store knows the lease then.
func (p *possession) ask(ctx context.Context, r control.Request) (control.Answer, bool, error) {
	if p.socket == "" {
		return control.Answer{}, false, nil
	}
	r.Do, r.LeaseID = p.verb, string(p.leaseID)
	limit := answerTime
	if r.Do == control.Check || r.Do == control.Progress {
		limit = promptTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answer, err := control.Ask(ctx, p.socket, r)
	switch {
	case errors.Is(err, control.ErrGone):
		p.socket = ""
		return answer, false, nil
	case err != nil:
		return answer, true, exit.With(exit.Unavailable, fmt.Errorf("%s %q: %w", p.verb, p.name, err))
	case answer.Status != exit.OK:
		return answer, true, exit.With(answer.Status, errors.New(answer.Error))
	}
	return answer, true, nil
}

// inStore opens the store of the lease.
func (p possession) inStore(a *app, ctx context.Context, f func(context.Context, *holdfast.Client) error) error {
	return a.withClient(ctx, nil, func(c *holdfast.Client, choice store.Choice) error {
		if asked := choice.Public(); p.store != "" && !stores.Same(asked, p.store) {
			return exit.With(exit.Config, fmt.Errorf("%s %q: its lease is in %s, and this would ask %s: name that store with --store, "+
				"or in HOLDFAST_STORE", p.verb, p.name, p.store, asked))
		}
		err := f(ctx, c)
		switch e := (*exit.Error)(nil); {
		case errors.As(err, &e):
			return err
		case errors.Is(err, holdfast.ErrLost):
			return exit.With(exit.Lost, fmt.Errorf("%s %q: the lease is lost: it has expired, or was released or broken", p.verb, p.name))
		}
		return exit.FromStore(err)
	})
}

// find returns the lease as the store has it, or ErrLost.
func (p possession) find(ctx context.Context, c *holdfast.Client) (driver.Holding, error) {
	lock, err := c.Inspect(ctx, p.name)
	if err != nil {
		return driver.Holding{}, err
	}
	for _, h := range lock.Live() {
		if p.leaseID.Is(h.LeaseID) {
			return h, nil
		}
	}
	return driver.Holding{}, holdfast.ErrLost
}

// A leaseView is a lease of this environment as JSON.
type leaseView struct {
	Name        string `json:"name"`
	Held        bool   `json:"held"`
	ExpiresInMS int64  `json:"expires_in_ms"`
}

// tell prints for how long the lease lasts.
func (a *app) tell(p possession, left time.Duration, quiet bool) error {
	text := fmt.Sprintf("%s is held, for another %s at least\n", render.Plain(p.name), left.Truncate(100*time.Millisecond))
	if quiet {
		text = ""
	}
	return a.answer(leaseView{p.name, true, left.Milliseconds()}, text)
}

// checkLease tells whether the lease of the environment is still good.
func (a *app) checkLease(ctx context.Context, quiet bool) error {
	p, err := a.possession(control.Check)
	if err != nil {
		return err
	}
	gone := p.socket
	answer, asked, err := p.ask(ctx, control.Request{})
	if err != nil {
		return err
	}
	if asked {
		return a.tell(p, answer.Left(), quiet)
	}
	return p.inStore(a, ctx, func(ctx context.Context, c *holdfast.Client) error {
		h, err := p.find(ctx, c)
		if err != nil {
			return err
		}
		if gone != "" && !quiet {
			a.say("check %q: its keeper is gone: nothing renews the lease", p.name)
		}
		return a.tell(p, h.ExpiresIn, quiet)
	})
}

func (a *app) extendCommand() *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "extend DURATION",
		Short: "Make the lease of this script last for a time from now, at least",
		Long: `Extend makes the lease of the environment last for DURATION from now, at least:
seconds, or a duration such as 5m. It never shortens a lease. It is for commands
of holdfast run --no-keep-alive, and for scripts with holdfast acquire.

The exit status is 0 if the lease lasts that long (or as long as --max-hold
allows), or
  64  wrong arguments
  69  the store, or the process that keeps the lease, does not answer
  78  there is no lease in the environment
  79  the lease is lost`,
		Example: `  holdfast run --no-keep-alive --ttl 5m import -- sh -c 'for f in *.csv; do holdfast extend 5m && ./import "$f" || exit; done'
  holdfast extend 90`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("extend: want one DURATION: seconds, or a duration such as 5m")
			}
			d, err := duration.Parse(args[0])
			if err != nil {
				return usage("extend %s: %w", args[0], err)
			}
			if d < holdfast.MinTTL || d > holdfast.MaxTTL {
				return usage("extend %s: want %s to %s", args[0], holdfast.MinTTL, holdfast.MaxTTL)
			}
			return a.extend(cmd.Context(), d)
		},
	})
}

func (a *app) extend(ctx context.Context, d time.Duration) error {
	p, err := a.possession(control.Extend)
	if err != nil {
		return err
	}
	answer, asked, err := p.ask(ctx, control.Request{TTLMS: d.Milliseconds()})
	if err != nil {
		return err
	}
	if asked {
		return a.tell(p, answer.Left(), true)
	}
	return p.inStore(a, ctx, func(ctx context.Context, c *holdfast.Client) error {
		l, err := p.adopt(ctx, c, d)
		if err != nil {
			return err
		}
		left := l.Remaining()
		if err := l.Leave(); err != nil {
			return err
		}
		return a.tell(p, left, true)
	})
}

// adopt takes the lease over from whoever has left it, for ttl at least. Neither
// extend nor release depends on the mode; shared is the one that excludes nothing
// here.
func (p possession) adopt(ctx context.Context, c *holdfast.Client, ttl time.Duration) (*holdfast.Lease, error) {
	return c.Adopt(ctx, p.name, p.leaseID, &holdfast.AdoptOptions{
		Token: p.token, Mode: holdfast.Shared, TTL: ttl, KeepAlive: holdfast.KeepAliveOff,
	})
}

func (a *app) progressCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "progress",
		Short: "Tell whoever keeps the lease of this script that the work goes on",
		Long: `Progress is for commands of holdfast run --progress D, and for scripts with
holdfast acquire --progress D: one that does not call it for D is stuck, and is
stopped. It sends nothing to the store. Elsewhere it changes nothing.

The exit status is 0, or
  69  the process that keeps the lease is gone, or does not answer
  78  there is no lease in the environment, or nobody keeps it
  79  the lease is lost`,
		Example: `  holdfast run --progress 1m import -- sh -c 'for f in *.csv; do ./import "$f" && holdfast progress || exit; done'
  holdfast progress || exit`,
		Args: words(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.possession(control.Progress)
			if err != nil {
				return err
			}
			if p.socket == "" {
				return exit.With(exit.Config, fmt.Errorf("progress %q: nobody keeps the lease: it ends with its TTL unless holdfast extend renews it", p.name))
			}
			_, asked, err := p.ask(cmd.Context(), control.Request{})
			if err == nil && !asked {
				return exit.With(exit.Unavailable, fmt.Errorf("progress %q: its keeper is gone: nothing renews the lease", p.name))
			}
			return err
		},
	}
}

// releaseTTL is what a release may lengthen a lease by, if it fails.
const releaseTTL = time.Second

func (a *app) releaseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "release [NAME]",
		Short: "Give back the lock of this script, or the lock NAME that you hold",
		Long: `Release gives back the lease of the environment, which holdfast acquire has put
there. Release NAME gives back what holdfast hold has taken, as the same user on
the same host. What holdfast run holds is given back when its command ends, and is
refused here.

The exit status is 0 if the lease was live, and is given back, or
  64  wrong arguments
  69  the store, or the process that keeps the lease, does not answer
  78  there is no lease in the environment, or it is that of a run; or you do not
      hold NAME
  79  the lease was lost before, or the hold had ended`,
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
	p, err := a.possession(control.Release)
	if err != nil {
		return err
	}
	_, asked, err := p.ask(ctx, control.Request{})
	if asked || err != nil {
		return err
	}
	return p.inStore(a, ctx, func(ctx context.Context, c *holdfast.Client) error {
		l, err := p.adopt(ctx, c, releaseTTL)
		if err != nil {
			return err
		}
		return l.Release(ctx)
	})
}
