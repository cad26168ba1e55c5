package cli

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/store"
	"github.com/holdfast-locks/holdfast/driver"
)

// jobFlags are the flags of the commands that take a lock. A flag that the command does not have
// counts as not given.
type jobFlags struct {
	cmd *cobra.Command

	opts                            holdfast.AcquireOptions // without mode and labels
	names                           []string
	pid                             int
	length                          time.Duration
	extend                          bool
	noWait                          bool
	busy                            int
	exclusive, shared               bool
	slots, permits                  int
	shell                           []string
	retention                       time.Duration
	replay                          bool
	fingerprint                     string
	maxOutput                       int
	pause                           time.Duration
	noRenewal                       bool
	onLost                          string
	killAfter                       time.Duration
	children                        bool
	statusFD                        int
	labels                          []string
	quiet, verbose                  bool
	closes, noFork, unlock, version bool // of flock(1)
}

// define gives cmd the flags of these names, in this order. Flags after a "|" are for special
// cases, and have their own heading in help.
func (f *jobFlags) define(cmd *cobra.Command, names string) {
	f.cmd = cmd
	all := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	all.StringArrayVarP(&f.names, "name", "N", nil, "take the lock `NAME`; with several -N, all of them or none")
	all.IntVar(&f.pid, "pid", 0, "keep the lock until the process `PID` ends: $$ in a script")
	durationVar(all, &f.length, "for", 0, limits{holdfast.MinTTL, holdfast.MaxTTL}, "hold it for `DURATION`; required")
	all.BoolVar(&f.extend, "extend", false, "make your hold last for DURATION from now, at least")
	all.BoolVarP(&f.noWait, "no-wait", "n", false, "do not wait for the lock")
	durationVarP(all, &f.opts.MaxWait, "wait", "w", 0, anyTime, "wait at most `SECONDS`, or e.g. 1m30s; 0 is -n")
	all.IntVarP(&f.busy, "busy-status", "E", exit.Busy, "exit `STATUS` if another client has the lock")
	all.BoolVarP(&f.exclusive, "exclusive", "x", false, "hold the lock exclusively (default)")
	all.BoolVarP(&f.shared, "shared", "s", false, "share the lock with other shared holders")
	all.IntVar(&f.slots, "slots", 0, "allow at most `N` holders, the same N for all users of NAME")
	all.IntVar(&f.permits, "permits", 1, "take `K` of the slots; only with --slots")
	all.StringArrayVarP(&f.shell, "command", "c", nil, "run `STRING` with sh -c")
	durationVar(all, &f.retention, "retention", 24*time.Hour, limits{holdfast.MinTTL, holdfast.MaxRetention}, "how long it counts as done")
	all.BoolVar(&f.replay, "replay", false, "if it was done already, print its recorded output")
	durationVar(all, &f.opts.TTL, "ttl", 30*time.Second, positive, "lease TTL: if this host dies, others wait this long")
	durationVar(all, &f.opts.MinHold, "min-hold", 0, positive, "keep the lock closed for at least this long")
	durationVar(all, &f.opts.MaxHold, "max-hold", 0, positive, "stop the command or script, and release, after this long")
	durationVar(all, &f.opts.StallAfter, "stall-after", 0, positive, "stop it if it has not called holdfast heartbeat for this long")
	all.StringVar(&f.fingerprint, "fingerprint", "", "`TEXT` that identifies the work: KEY with another one is refused")
	all.IntVar(&f.maxOutput, "max-output", 1<<20, "longest output to record, in `BYTES`; up to 16 MiB")
	durationVar(all, &f.pause, "pause", time.Second, limits{1, time.Hour}, "wait after COMMAND ends; doubled each time, up to a minute")
	all.BoolVar(&f.noRenewal, "no-keep-alive", false, "do not renew the lease: the command calls holdfast extend")
	all.StringVar(&f.onLost, "on-lost", "term", "`term|kill|ignore` the command if the lock is lost")
	durationVar(all, &f.killAfter, "kill-after", 0, anyTime, "time between TERM and KILL (default: a quarter of the TTL, at most 5s)")
	all.BoolVar(&f.children, "wait-children", false, "also wait for the command's background processes")
	all.IntVar(&f.statusFD, "status-fd", 0, "report events as JSON lines to file descriptor `N`")
	all.StringVar(&f.opts.Reason, "reason", "", "`TEXT` shown to others while the lock is held")
	all.StringArrayVar(&f.labels, "label", nil, "`KEY=VALUE` shown to others; may be repeated")
	all.BoolVarP(&f.quiet, "quiet", "q", false, "no messages about the lock")
	all.BoolVarP(&f.verbose, "verbose", "v", false, "report what happens to the lock")
	f.defineFlock(all)
	cmd.Flags().SortFlags = false
	common, rare, _ := strings.Cut(names, "|")
	for name := range strings.FieldsSeq(common + rare) {
		cmd.Flags().AddFlag(all.Lookup(name))
	}
	if rare != "" {
		cmd.Annotations = map[string]string{firstRare: strings.Fields(rare)[0]}
	}
}

// firstRare is the annotation that names the first flag for special cases.
const firstRare = "first rare flag"

// help prints the help of a command.
func help(c *cobra.Command, _ []string) {
	text := c.UsageString()
	if first := c.Annotations[firstRare]; first != "" {
		flags := strings.Index(text, "\nFlags:\n") // the examples above it name flags too
		flag := flags + strings.Index(text[flags:], "--"+first+" ")
		line := strings.LastIndex(text[:flag], "\n")
		text = text[:line] + "\n\nFlags for special cases:" + text[line:]
	}
	_, _ = io.WriteString(c.OutOrStdout(), strings.TrimSpace(cmp.Or(c.Long, c.Short))+"\n\n"+text)
}

// limits are the least and the greatest time that a flag accepts.
type limits struct{ least, most time.Duration }

const forever time.Duration = math.MaxInt64

var (
	anyTime  = limits{0, forever}
	positive = limits{1, forever}
)

// String returns the accepted times, for error messages.
func (l limits) String() string {
	switch {
	case l.least > 1:
		return short(l.least) + " to " + short(l.most)
	case l.most == forever:
		return "more than 0"
	}
	return "more than 0, and up to " + short(l.most)
}

// durationVar defines a flag for a length of time: seconds, as for flock(1) and sleep(1), or a Go
// duration. All such flags are defined here.
func durationVar(flags *pflag.FlagSet, p *time.Duration, name string, value time.Duration, l limits, usage string) {
	durationVarP(flags, p, name, "", value, l, usage)
}

// durationVarP is durationVar with a shorthand letter.
func durationVarP(flags *pflag.FlagSet, p *time.Duration, name, letter string, value time.Duration, l limits, usage string) {
	*p = value
	flags.VarP(&durationValue{p, l}, name, letter, usage)
}

// A durationValue is the value of such a flag.
type durationValue struct {
	to *time.Duration
	limits
}

// Type names the argument in help.
func (d *durationValue) Type() string { return "duration" }

// String is empty for 0, so that help shows no default.
func (d *durationValue) String() string {
	if *d.to == 0 {
		return ""
	}
	return short(*d.to)
}

// short returns a duration as flags take it, without its zero units: 48h.
func short(d time.Duration) string {
	s := d.String()
	for _, none := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, none) {
			s = s[:len(s)-2]
		}
	}
	return s
}

// Set reads an argument.
func (d *durationValue) Set(s string) error {
	v, err := store.ParseDuration(s)
	if err == nil && (v < d.least || v > d.most) {
		err = fmt.Errorf("want %s", d.limits)
	}
	*d.to = v
	return err
}

// ofFlock maps the long names of flock(1) to ours, so that its scripts run unchanged.
func ofFlock(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	return pflag.NormalizedName(cmp.Or(flockNames[name], name))
}

var flockNames = map[string]string{"nonblock": "no-wait", "nb": "no-wait", "timeout": "wait", "conflict-exit-code": "busy-status"}

// flockFlags are flags of flock(1) that change nothing, or are refused.
const flockFlags = " e close no-fork unlock version"

// defineFlock defines flockFlags. Help does not list them.
func (f *jobFlags) defineFlock(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.exclusive, "e", "e", false, "-x")
	flags.BoolVarP(&f.closes, "close", "o", false, "background processes do not keep the lock (default)")
	flags.BoolVarP(&f.noFork, "no-fork", "F", false, "refused")
	flags.BoolVarP(&f.unlock, "unlock", "u", false, "refused")
	flags.BoolVarP(&f.version, "version", "V", false, "print the version")
	for name := range strings.FieldsSeq(flockFlags) {
		flags.Lookup(name).Hidden = true
	}
}

// inScripts explains how a shell script takes a lock for itself.
const inScripts = `to hold NAME from here to the end of a shell script, write: eval "$(holdfast acquire NAME --pid $$ || echo exit $?)"`

// refused names the replacement of a flag that is not supported.
func (f *jobFlags) refused() error {
	switch {
	case f.noFork:
		return usage("run: -F: holdfast stays the parent of the command, because it renews the lock; %s, and then: exec COMMAND", inScripts)
	case f.unlock:
		return usage("run: -u: a lock of run is released when its command ends; %s, and to release it earlier: holdfast release", inScripts)
	case f.closes && f.children:
		return usage("run: -o and --wait-children exclude one another: -o releases the lock when the command ends")
	}
	return nil
}

// isNumber reports whether a word could be the number of a file descriptor.
func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// words requires least to most arguments. The error shows the usage of the command.
func words(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		verb, form := verbOf(cmd), cmd.Use
		if cmd.HasParent() {
			form = cmd.Parent().CommandPath() + " " + form
		}
		switch {
		case len(args) > most && strings.Contains(args[most], "://"):
			return usage("%s: %q is too much: a store is named by --store %s", verb, args[most], args[most])
		case len(args) > most:
			return usage("%s: %q is too much: want %s", verb, args[most], form)
		case len(args) < least:
			return usage("%s: want %s", verb, form)
		}
		return nil
	}
}

// names is words for names of locks. It refuses an invalid name before a store is made.
func names(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := words(least, most)(cmd, args); err != nil {
			return err
		}
		for _, name := range args {
			if err := driver.CheckName(name); err != nil {
				return usage("%s: %w", verbOf(cmd), err)
			}
		}
		return nil
	}
}

// verbOf returns the name of a command in messages: "run", "token issue".
func verbOf(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}
