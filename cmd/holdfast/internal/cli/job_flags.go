package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
)

// jobFlags are the flags that run and once share, as they were given.
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

// positive checks those of the flags that are called so, and were given: they take no 0.
func positive(cmd *cobra.Command, flags map[string]time.Duration) error {
	for name, given := range flags {
		if cmd.Flags().Changed(name) && given <= 0 {
			return usage("%s: --%s %s: want more than 0", cmd.Name(), name, given)
		}
	}
	return nil
}

// command returns the command to run: words, or what -c has.
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

// options fills in what is to be said of the lock by the flags that run and once
// share. The error is for usage.
func (f *jobFlags) options(o *holdfast.AcquireOptions, waits bool) (err error) {
	o.TTL, o.Reason = f.ttl, f.reason
	if waits {
		o.Wait = f.wait
	}
	if o.Labels, err = parseLabels(f.labels); err == nil {
		err = o.Check()
	}
	return err
}

// killAfter returns the time between TERM and KILL: what was given, or else its
// default.
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
