package cli

import "github.com/spf13/pflag"

// stepFlags are the flags of begin and complete that running a command has no use for.
type stepFlags struct {
	pid   int
	value string
}

func (f *stepFlags) defineSteps(flags *pflag.FlagSet) {
	flags.IntVar(&f.pid, "pid", 0, "of begin: keep the key until the process `PID` ends: $$ in a script")
	flags.StringVar(&f.value, "value", "", "of complete: the result is `TEXT`, and not standard input")
}

// steps are the commands of do-once work whose beginning and end are two commands, and
// the flags that each has besides those of the store.
var steps = map[string][]string{
	"begin":    {"pid", "no-wait", "wait", "ttl", "max-hold", "retention", "replay", "fingerprint", "max-output", "reason", "label", "quiet"},
	"complete": {"value"},
	"fail":     {},
}
