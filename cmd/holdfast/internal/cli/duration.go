package cli

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/duration"
)

// durationVar defines a flag whose argument is a length of time. Every flag of
// this program that takes one is made here: seconds, as flock(1) and sleep(1) take
// them, or a duration of Go.
func durationVar(flags *pflag.FlagSet, p *time.Duration, name string, value time.Duration, usage string) {
	durationVarP(flags, p, name, "", value, usage)
}

// durationVarP is durationVar for a flag that has a letter, too.
func durationVarP(flags *pflag.FlagSet, p *time.Duration, name, letter string, value time.Duration, usage string) {
	*p = value
	flags.VarP((*durationValue)(p), name, letter, usage)
}

// A durationValue is the argument of such a flag.
type durationValue time.Duration

// Type is what help calls the argument.
func (d *durationValue) Type() string { return "duration" }

// String is empty for 0, which help then does not call a default.
func (d *durationValue) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

// Set reads an argument.
func (d *durationValue) Set(s string) error {
	v, err := duration.Parse(s)
	*d = durationValue(v)
	return err
}
