package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
)

// jobFlags are the flags that the commands which take a lock share, as they were given.
type jobFlags struct {
	noWait    bool
	wait      time.Duration
	busy      int
	shell     []string
	ttl       time.Duration
	maxHold   time.Duration
	onLost    string
	killAfter time.Duration
	children  bool
	reason    string
	labels    []string
	statusFD  int
	quiet     bool
	verbose   bool
}

func (f *jobFlags) defineWait(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.noWait, "no-wait", "n", false, "do not wait for the lock")
	durationVarP(flags, &f.wait, "wait", "w", 0, "wait at most `SECONDS` or a duration such as 1m30s; 0 is -n")
}

func (f *jobFlags) defineBusy(flags *pflag.FlagSet) {
	flags.IntVarP(&f.busy, "busy-status", "E", exit.Busy, "exit `STATUS` if another client has the lock")
}

func (f *jobFlags) defineCommand(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&f.shell, "command", "c", nil, "run `STRING` with sh -c")
}

func (f *jobFlags) defineTTL(flags *pflag.FlagSet) {
	durationVar(flags, &f.ttl, "ttl", 30*time.Second, "lease TTL: if this host dies, others wait this long")
}

func (f *jobFlags) defineStopping(flags *pflag.FlagSet) {
	flags.StringVar(&f.onLost, "on-lost", "term", "what to do with the command if the lock is lost: `term|kill|ignore`")
	f.defineKill(flags)
	flags.BoolVar(&f.children, "wait-children", false, "also wait for the command's background processes")
	flags.IntVar(&f.statusFD, "status-fd", 0, "report events as JSON lines to file descriptor `N`")
}

func (f *jobFlags) defineKill(flags *pflag.FlagSet) {
	durationVar(flags, &f.killAfter, "kill-after", 0, "time between TERM and KILL (default: a quarter of the TTL, at most 5s)")
}

// defineTexts defines what others see of the holder, and what the user sees of the lock.
func (f *jobFlags) defineTexts(flags *pflag.FlagSet) {
	f.defineHolder(flags)
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "report what happens to the lock")
}

func (f *jobFlags) defineHolder(flags *pflag.FlagSet) {
	flags.StringVar(&f.reason, "reason", "", "`TEXT` shown to others while the lock is held")
	flags.StringArrayVar(&f.labels, "label", nil, "`KEY=VALUE` shown to others; may be repeated")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no messages about the lock")
}

// positive refuses 0 for those of the named flags that were given.
func positive(cmd *cobra.Command, flags map[string]time.Duration) error {
	for name, given := range flags {
		if cmd.Flags().Changed(name) && given <= 0 {
			return usage("%s: --%s %s: want more than 0", cmd.Name(), name, given)
		}
	}
	return nil
}

// command returns the command to run: words, or the string of -c.
func (f *jobFlags) command(cmd *cobra.Command, words []string) ([]string, error) {
	switch verb := cmd.Name(); {
	case len(f.shell) > 1:
		return nil, usage("%s: -c is given twice", verb)
	case len(f.shell) == 1 && len(words) > 0:
		return nil, usage("%s: -c and a command are both given", verb)
	case len(f.shell) == 1:
		return []string{"/bin/sh", "-c", f.shell[0]}, nil
	case len(words) == 0 || words[0] == "":
		return nil, usage("%s: no command given", verb)
	}
	return words, nil
}

// options fills in TTL, reason, labels and wait. The error is for usage.
func (f *jobFlags) options(o *holdfast.AcquireOptions, waits bool) (err error) {
	o.TTL, o.Reason = f.ttl, f.reason
	if waits {
		o.MaxWait = f.wait
	}
	if o.Labels, err = parseLabels(f.labels); err == nil {
		err = o.Check()
	}
	return err
}

// killAfter returns the time between TERM and KILL: the given one, or the default.
func killAfter(cmd *cobra.Command, given, ttl time.Duration) (time.Duration, error) {
	switch {
	case !cmd.Flags().Changed("kill-after"):
		return min(5*time.Second, ttl/4), nil
	case given < 0 || given > ttl/2:
		return 0, usage("%s: --kill-after %s: want 0 to half of the TTL, %s", cmd.Name(), given, ttl/2)
	}
	return given, nil
}

func parseLabels(given []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, s := range given {
		key, value, ok := strings.Cut(s, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("--label %q: want KEY=VALUE", s)
		}
		labels[key] = value
	}
	return labels, nil
}
