package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// TestDurationFlag checks the flags of durationVar: defaults, arguments and help.
func TestDurationFlag(t *testing.T) {
	var ttl, pause time.Duration
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	durationVar(flags, &ttl, "ttl", 30*time.Second, anyTime, "lease TTL")
	durationVarP(flags, &pause, "pause", "p", 0, limits{1, time.Minute}, "pause")
	if ttl != 30*time.Second || pause != 0 {
		t.Errorf("defaults: %s and %s", ttl, pause)
	}
	const help = "  -p, --pause duration   pause\n      --ttl duration     lease TTL (default 30s)\n"
	if got := flags.FlagUsages(); got != help {
		t.Errorf("help:\n%swant:\n%s", got, help)
	}
	if err := flags.Parse([]string{"--ttl", "1m30s", "-p", "2.5"}); err != nil || ttl != 90*time.Second || pause != 2500*time.Millisecond {
		t.Errorf("--ttl 1m30s -p 2.5: %s and %s, %v", ttl, pause, err)
	}
	for text, want := range map[string]string{"0": "want more than 0, and up to 1m", "61": "want more than 0, and up to 1m"} {
		if err := flags.Parse([]string{"-p", text}); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("-p %s: %v, want %s", text, err, want)
		}
	}
	if err := flags.Parse([]string{"-p", "soon"}); err == nil || !strings.Contains(err.Error(), "want seconds") {
		t.Errorf("-p soon: %v", err)
	}
}
