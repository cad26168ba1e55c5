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
	wait      time.Duration
	ttl       time.Duration
	killAfter time.Duration
	reason    string
	labels    []string
	quiet     bool
	verbose   bool
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
