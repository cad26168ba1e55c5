package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/show"
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
	var admit bool
	var group string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether the store is fit for locks",
		Long: `Doctor checks the settings, clocks, replicas and rights of the store, and tries each kind of
request on a lock with a random name.

New servers of a quorum, and servers that have lost their data, grant nothing for the
quorum's max_ttl (5m). --admit ends that wait, before the checks. Use it only for a quorum
that is not in use yet: it is refused with status 75 if a server has a lease.

--make-system-store makes and checks /var/lib/holdfast/locks.db, the default store of all users.
Only root and the members of the group holdfast, or of =GROUP, can use it. It needs root
(status 77) and the group (78). An existing file is only checked. SECURITY.md describes what its
members can do.

The exit status is 0 without warnings, 1 with warnings. Others: holdfast --help.`,
		Example: `  holdfast doctor --store redis://redis.internal:6379 --ttl 10s
  sudo holdfast doctor --make-system-store`,
		Args: words(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.defaultTTL(cmd, &ttl)
			if group != "" {
				if err := a.makeSystemStore(cmd, group); err != nil {
					return err
				}
			}
			return a.doctor(cmd.Context(), ttl, admit)
		},
	}
	durationVar(cmd.Flags(), &ttl, "ttl", 30*time.Second, limits{10 * time.Millisecond, 30 * 24 * time.Hour}, "`DURATION` of the leases that the store must support")
	cmd.Flags().BoolVar(&admit, "admit", false, "first let the servers of a new quorum grant locks at once")
	cmd.Flags().StringVar(&group, "make-system-store", "", "first make the store of root and the members of `GROUP`")
	cmd.Flags().Lookup("make-system-store").NoOptDefVal = store.Group
	return a.withJSON(cmd)
}

// makeSystemStore makes the system store, and chooses it for this run.
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
		a.say("%s exists, and nothing was changed", choice.Public())
	}
	return nil
}

func (a *app) doctor(ctx context.Context, ttl time.Duration, admit bool) error {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	opening, opened := context.WithTimeout(ctx, openTimeout)
	engine, err := a.session().open(opening)
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
		return exit.Errorf(exit.Config, "doctor: %w", err)
	}
	if features.Diagnoser == nil {
		return exit.Errorf(exit.Config, "doctor: there is nothing to check in the store %s", a.choice.Public())
	}
	diagnosis, err := features.Diagnoser.Diagnose(ctx, driver.DiagnoseRequest{TTL: ttl, URL: a.choice.URL})
	if err != nil {
		return openError(err)
	}
	which := driver.Finding{Key: "store", Text: fmt.Sprintf("%s (%s)", a.choice.Public(), a.choice.Source)}
	diagnosis.Findings = slices.Insert(diagnosis.Findings, 0, which)
	return a.answerWith(doctorStatus(diagnosis), wire.DiagnosisOf(diagnosis, a.choice.Public(), ttl), show.Diagnosis(diagnosis))
}

// admitAll ends the quarantine of a quorum's servers, unless one of them has a lease.
func admitAll(ctx context.Context, engine driver.Engine) error {
	quorum, ok := store.Quorum(engine)
	if !ok {
		return usage("doctor: --admit: the store is not a quorum")
	}
	name, found, err := quorum.Leased(ctx)
	if found {
		return exit.Errorf(exit.Busy, "doctor: --admit: %q is held: the quorum is in use, and its servers must wait", name)
	}
	if err == nil {
		err = quorum.Admit(ctx)
	}
	if err != nil {
		return openError(err)
	}
	return nil
}

// doctorStatus returns the status of the first failure, else 1 if there are warnings.
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
