package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/render"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/store"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/wire"
)

const (
	doctorTimeout = 30 * time.Second // of all checks
	openTimeout   = 10 * time.Second // of the connection before them
)

func (a *app) doctorCommand() *cobra.Command {
	var ttl time.Duration
	var admit, makeSystem bool
	var group string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether the store is fit for locks",
		Long: `Doctor looks at the store's settings, clocks, replicas and rights, and tries all
kinds of requests on a lock of a random name.

The exit status is 0 if there are no warnings, 1 if there are some, 69 if the store
cannot be reached or does not serve, 77 if it does not permit what locks need,
78 if it cannot do that, or the URL is wrong.

The servers of a quorum that are new, or have lost their data, grant nothing for
the quorum's max_ttl (5m). --admit ends that at once, before the checks. Use it
when you know that nobody uses the quorum yet: it is refused, with status 75, if
a server has a lease, and with 69 if one does not answer.

Without a store that somebody names, each user has a file of his own, so that root's
cron and people do not exclude each other. --make-system-store makes one file for
root and the members of the group holdfast, /var/lib/holdfast/locks.db, and checks
it: from then on it is the store of all who name no other. Without root it is status
77, without the group 78. If the store is there, nothing is changed, and 78 says what
is not as it should be. See SECURITY.md for what its members can do.`,
		Example: `  holdfast doctor --store redis://redis.internal:6379 --ttl 10s
  sudo holdfast doctor --make-system-store`,
		Args: words(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.defaultTTL(cmd, &ttl)
			if ttl < 10*time.Millisecond || ttl > 30*24*time.Hour {
				return usage("doctor: --ttl %s: want 10ms to 720h", ttl)
			}
			if makeSystem {
				if err := a.makeSystemStore(cmd, group); err != nil {
					return err
				}
			} else if cmd.Flags().Changed("group") {
				return usage("doctor: --group: want --make-system-store with it")
			}
			return a.doctor(cmd.Context(), ttl, admit)
		},
	}
	durationVar(cmd.Flags(), &ttl, "ttl", 30*time.Second, "`DURATION` of the leases that the store is to be fit for")
	cmd.Flags().BoolVar(&admit, "admit", false, "first let the servers of a quorum that nobody uses yet grant locks at once")
	cmd.Flags().BoolVar(&makeSystem, "make-system-store", false, "first make the store that root and a group share, and check that one")
	cmd.Flags().StringVar(&group, "group", store.Group, "with --make-system-store: `NAME` of the group whose members use the store")
	return a.withJSON(cmd)
}

// makeSystemStore makes the system store, which is the one of this run then.
func (a *app) makeSystemStore(cmd *cobra.Command, group string) error {
	if a.asked.Store != "" || a.asked.File != "" {
		return usage("doctor: --make-system-store: --store and --store-file name another store: leave them out")
	}
	choice, made, err := a.asked.MakeSystem(cmd.Context(), group)
	a.choice, a.chosen = choice, true
	if err != nil {
		return openError(err)
	}
	if made {
		a.say("made %s for root and the members of the group %s (to add one: usermod -aG %s USER)", choice.Public(), group, group)
	} else {
		a.say("%s is there, as it should be", choice.Public())
	}
	return nil
}

func (a *app) doctor(ctx context.Context, ttl time.Duration, admit bool) error {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	opening, opened := context.WithTimeout(ctx, openTimeout)
	engine, choice, err := a.open(opening)
	opened()
	if err != nil {
		return err
	}
	defer engine.Close()
	if admit {
		if err := admitAll(ctx, engine); err != nil {
			return err
		}
	}
	features, err := driver.FeaturesOf(engine)
	if err != nil {
		return exit.With(exit.Config, fmt.Errorf("doctor: %w", err))
	}
	if features.Diagnoser == nil {
		return exit.With(exit.Config, fmt.Errorf("doctor: there is nothing to check in the store %s", choice.Public()))
	}
	diagnosis, err := features.Diagnoser.Diagnose(ctx, driver.DiagnoseRequest{TTL: ttl, URL: choice.URL})
	if err != nil {
		return openError(err)
	}
	which := driver.Finding{Key: "store", Text: fmt.Sprintf("%s (%s)", choice.Public(), choice.Source)}
	diagnosis.Findings = slices.Insert(diagnosis.Findings, 0, which)
	return a.answerWith(doctorStatus(diagnosis), wire.DiagnosisOf(diagnosis, choice.Public(), ttl), render.Diagnosis(diagnosis))
}

// admitAll ends the quarantine of a quorum's members, unless one of them has a
// lease.
func admitAll(ctx context.Context, engine driver.Engine) error {
	quorum, ok := store.Quorum(engine)
	if !ok {
		return usage("doctor: --admit: the store is not a quorum")
	}
	name, found, err := quorum.Leased(ctx)
	if found {
		return exit.With(exit.Busy, fmt.Errorf("doctor: --admit: %q is held: the quorum is in use, and its servers must wait", name))
	}
	if err == nil {
		err = quorum.Admit(ctx)
	}
	if err != nil {
		return openError(err)
	}
	return nil
}

// doctorStatus is that of the first failure, or says whether there are
// warnings.
func doctorStatus(d driver.Diagnosis) int {
	for _, f := range d.Findings {
		if f.Level == driver.Fail {
			return openStatus(f.Err)
		}
	}
	if d.Worst() == driver.Warn {
		return exit.Not
	}
	return exit.OK
}
