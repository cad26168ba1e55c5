package cli

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/store"
)

// durationVar defines a flag for a length of time: seconds, as for flock(1) and sleep(1), or
// a duration of Go. All such flags are defined here.
func durationVar(flags *pflag.FlagSet, p *time.Duration, name string, value time.Duration, usage string) {
	durationVarP(flags, p, name, "", value, usage)
}

// durationVarP is durationVar with a shorthand letter.
func durationVarP(flags *pflag.FlagSet, p *time.Duration, name, letter string, value time.Duration, usage string) {
	*p = value
	flags.VarP((*durationValue)(p), name, letter, usage)
}

// A durationValue is the argument of such a flag.
type durationValue time.Duration

// Type names the argument in help.
func (d *durationValue) Type() string { return "duration" }

// String is empty for 0, so that help shows no default.
func (d *durationValue) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

// Set reads an argument.
func (d *durationValue) Set(s string) error {
	v, err := store.ParseDuration(s)
	*d = durationValue(v)
	return err
}
