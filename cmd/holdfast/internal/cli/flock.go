package cli

import (
	"strings"

	"github.com/spf13/pflag"
)

// ofFlock maps the long names of flock(1) to ours, so that its scripts run unchanged.
func ofFlock(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	for _, alias := range flockNames {
		if name == alias.flock {
			name = alias.ours
		}
	}
	return pflag.NormalizedName(name)
}

var flockNames = []struct{ flock, ours string }{
	{"nonblock", "no-wait"}, {"nb", "no-wait"}, {"timeout", "wait"}, {"conflict-exit-code", "busy-status"},
}

// flockFlags are flags of flock(1) that change nothing, or are refused.
const flockFlags = " e close no-fork unlock version"

// defineFlock defines them. Help does not list them.
func (f *jobFlags) defineFlock(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.exclusive, "e", "e", false, "-x")
	flags.BoolVarP(&f.closes, "close", "o", false, "background processes do not keep the lock (default)")
	flags.BoolVarP(&f.noFork, "no-fork", "F", false, "refused")
	flags.BoolVarP(&f.unlock, "unlock", "u", false, "refused")
	flags.BoolVarP(&f.version, "version", "V", false, "print the version")
	for _, name := range []string{"e", "close", "no-fork", "unlock", "version"} {
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
