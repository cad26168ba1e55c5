package cli

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/render"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/wire"
)

func (a *app) breakCommand() *cobra.Command {
	var opts holdfast.BreakOptions
	cmd := &cobra.Command{
		Use:   "break NAME [--token N] [--closed] --reason TEXT",
		Short: "Take a lock away from those who hold it",
		Long: `Break looks who has the lock NAME and ends those leases, or the one with
--token, and none that is granted after it looked. The first of the queue has the
lock at once. A holder that can be reached is told at once who broke the lock, and
why: holdfast run then stops its command, with status 79. One that cannot finds
out with its next renewal, within 5 s, or a third of its TTL if that is sooner.
Until its command has stopped two may be at work; only a resource that checks
fencing tokens is safe.

A name that --min-hold keeps closed has no holder, and stays closed. With --closed
break opens it, and ends no lease of anybody.

Author and reason are kept with the name for 24 hours: holdfast show prints them.

The exit status is 0 if a lease was ended, or with --closed a name opened, and 1 if
there was none.`,
		Example: `  holdfast break nightly --reason "web-3 has lost its disk"
  holdfast break nightly --closed --reason "it failed: run it again"`,
		Args: names(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(opts.Reason) == "" {
				return usage("break: no reason given: say with --reason why the lock is taken away")
			}
			if cmd.Flags().Changed("token") && opts.Token == 0 {
				return usage("break: --token 0: no lease has it; leave it out to break whoever holds the lock")
			}
			if opts.Author == "" {
				opts.Author = thisUser()
			}
			if err := driver.CheckBreak(opts.Author, opts.Reason); err != nil {
				return usage("break: %v", err)
			}
			return a.ask(cmd, func(ctx context.Context, c *holdfast.Client) error {
				return a.breakLock(ctx, c, args[0], opts)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.Reason, "reason", "", "`TEXT` that says why; required")
	flags.StringVar(&opts.Author, "author", "", "`NAME` of whoever breaks it (default: this user and host)")
	flags.Uint64Var(&opts.Token, "token", 0, "break only the lease with this fencing `TOKEN`, as show prints it")
	flags.BoolVar(&opts.Closed, "closed", false, "open the name if --min-hold keeps it closed, and end no lease")
	return a.withJSON(cmd)
}

// thisUser says who runs the command: `ada@ops-1`.
func thisUser() string {
	who, host := userAndHost()
	if host != "" {
		who += "@" + host
	}
	return who
}

// userAndHost says who runs the command, and where, as far as that is known.
func userAndHost() (who, host string) {
	who = fmt.Sprint("uid ", os.Getuid())
	if u, err := user.Current(); err == nil && u.Username != "" {
		who = u.Username
	}
	host, _ = os.Hostname()
	return who, host
}

func (a *app) breakLock(ctx context.Context, c *holdfast.Client, name string, opts holdfast.BreakOptions) error {
	before, err := c.Inspect(ctx, name)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(before.Holders, driver.Holding.Foreign) {
		return exit.With(exit.Config, fmt.Errorf("break %q: a client that is not holdfast has it: stop that client, "+
			"or if it is dead, delete its key in the store", name))
	}
	exact := opts.Token
	if exact == 0 { // what was seen, and nobody who comes later
		opts.Token, opts.Older = latest(before, opts.Closed), true
	}
	var records []holdfast.Broken
	if opts.Token != 0 {
		if records, err = c.Break(ctx, name, &opts); err != nil {
			return err
		}
	}
	broken, status := holdingsOf(before, records), exit.Not
	if len(broken) > 0 {
		a.say("broke %q: %s", before.Name, render.Plain(opts.Reason))
		status = exit.OK
	}
	v := wire.Break{Name: before.Name, Author: opts.Author, Reason: opts.Reason, Broken: wire.HoldersOf(broken)}
	return a.answerWith(status, v, whatBroke(before, broken, exact, opts.Closed))
}

// latest returns the greatest token of the live leases of a lock, or of what is
// kept closed of it; 0 if there is none.
func latest(lock driver.Lock, closed bool) (token uint64) {
	for _, h := range lock.Holders {
		if h.Released == closed {
			token = max(token, h.Token)
		}
	}
	return token
}

// holdingsOf returns the leases that a break has ended, as they were before it.
func holdingsOf(before driver.Lock, records []holdfast.Broken) (broken []driver.Holding) {
	for _, b := range records {
		h := driver.Holding{LeaseID: b.LeaseID, Token: b.Token, Permits: b.Permits, Holder: b.Holder}
		for _, known := range before.Holders {
			if known.Token == b.Token {
				h = known
			}
		}
		broken = append(broken, h)
	}
	return broken
}

// whatBroke says who has lost the lock, or why nobody has.
func whatBroke(before driver.Lock, broken []driver.Holding, token uint64, closed bool) string {
	name := render.Plain(before.Name)
	isIt := func(h driver.Holding) bool { return h.Token == token }
	switch {
	case len(broken) > 0:
		var b strings.Builder
		for _, h := range broken {
			fmt.Fprintf(&b, "%s was %s, with token %d\n", name, render.Possession(h), h.Token)
		}
		return b.String()
	case token != 0 && !slices.ContainsFunc(before.Holders, isIt):
		return fmt.Sprintf("no lease of %s has token %d\n", name, token)
	case len(before.Holders) == 0:
		return render.Line(before)
	case !closed && len(before.Live()) == 0:
		return render.Line(before) + "nobody holds it: --closed opens it\n"
	case closed && latest(before, true) == 0:
		return render.Line(before) + "it is not kept closed: without --closed, break ends that\n"
	case closed:
		return name + " has opened meanwhile\n"
	}
	return name + " was given back meanwhile\n"
}
