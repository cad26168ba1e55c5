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
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

func (a *app) breakCommand() *cobra.Command {
	var opts holdfast.BreakOptions
	cmd := &cobra.Command{
		Use:   "break NAME [--token N] [--closed] --reason TEXT",
		Short: "Take a lock away from its holders",
		Long: `Break ends the leases of NAME, or the one with --token, and no lease that is granted
later. The next client in the queue gets the lock at once. A holder learns who broke the lock,
and why: holdfast run stops its command, with status 79. A holder that cannot be reached
learns of it at its next renewal, within 5 s, or a third of its TTL if that is shorter. Until
it has stopped, two clients may be at work: only a resource that checks fencing tokens is safe.

holdfast show prints author and reason for 24 hours.

The exit status is 0 if a lease was ended or the name opened, 1 if there was none. Others:
holdfast --help.`,
		Example: `  holdfast break nightly --reason "web-3 has lost its disk"
  holdfast break nightly --closed --reason "it failed: run it again"`,
		Args: names(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(opts.Reason) == "" {
				return usage("break: no reason given: want --reason TEXT, which the holders see")
			}
			if cmd.Flags().Changed("token") && opts.Token == 0 {
				return usage("break: --token 0: no lease has it; leave it out to break all leases of the lock")
			}
			opts.Author = thisUser()
			if err := driver.CheckBreak(opts.Author, opts.Reason); err != nil {
				return usage("break: %v", err)
			}
			return a.ask(cmd, func(ctx context.Context, c *holdfast.Client) error {
				return a.breakLock(ctx, c, args[0], opts)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.Reason, "reason", "", "`TEXT` for the holders and for holdfast show; required")
	flags.Uint64Var(&opts.Token, "token", 0, "break only the lease with this fencing `TOKEN`")
	flags.BoolVar(&opts.Closed, "closed", false, "open a name that --min-hold keeps closed, and end no lease")
	return a.withJSON(cmd)
}

// thisUser returns the user of the command: `ada@ops-1`.
func thisUser() string {
	who, host := userAndHost()
	if host != "" {
		who += "@" + host
	}
	return who
}

// userAndHost returns the user of the command and this host, as far as they are known.
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
	if slices.ContainsFunc(before.Holders, lockinfo.Holding.Foreign) {
		return exit.Errorf(exit.Config, "break %q: a client that is not holdfast holds it: stop that client, "+
			"or if it is dead, delete its key in the store", name)
	}
	exact := opts.Token
	if exact == 0 { // the leases just seen, and none granted later
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
		a.say("broke %q: %s", before.Name, show.Plain(opts.Reason))
		status = exit.OK
	}
	author := opts.Author
	if len(records) > 0 {
		author = records[0].Author // a server with callers sets the author itself
	}
	v := wire.Break{Name: before.Name, Author: author, Reason: opts.Reason, Broken: wire.HoldersOf(broken)}
	return a.answerWith(status, v, whatBroke(before, broken, exact, opts.Closed))
}

// latest returns the greatest token of the live leases of a lock or, if closed, of the
// released leases that keep it closed; 0 if there is none.
func latest(lock lockinfo.LockState, closed bool) (token uint64) {
	for _, h := range lock.Holders {
		if h.Released == closed {
			token = max(token, h.Token)
		}
	}
	return token
}

// holdingsOf returns the leases that a break has ended, in their state before it.
func holdingsOf(before lockinfo.LockState, records []holdfast.Broken) (broken []lockinfo.Holding) {
	for _, b := range records {
		h := lockinfo.Holding{LeaseID: b.LeaseID, Token: b.Token, Mode: b.Mode, Holder: b.Holder}
		for _, known := range before.Holders {
			if known.Token == b.Token {
				h = known
			}
		}
		broken = append(broken, h)
	}
	return broken
}

// whatBroke describes the broken leases, or why there are none.
func whatBroke(before lockinfo.LockState, broken []lockinfo.Holding, token uint64, closed bool) string {
	name := show.Plain(before.Name)
	isIt := func(h lockinfo.Holding) bool { return h.Token == token }
	switch {
	case len(broken) > 0:
		var b strings.Builder
		for _, h := range broken {
			fmt.Fprintf(&b, "%s was %s, with token %d\n", name, show.Possession(h), h.Token)
		}
		return b.String()
	case token != 0 && !slices.ContainsFunc(before.Holders, isIt):
		return fmt.Sprintf("no lease of %s has token %d\n", name, token)
	case len(before.Holders) == 0:
		return show.LockLine(before)
	case !closed && len(before.Live()) == 0:
		return show.LockLine(before) + "it has no holder: --closed opens it\n"
	case closed && latest(before, true) == 0:
		return show.LockLine(before) + "it is not kept closed: without --closed, break ends that\n"
	case closed:
		return name + " has opened meanwhile\n"
	}
	return name + " was released meanwhile\n"
}
