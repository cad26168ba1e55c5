package cli

import (
	"runtime/debug"
	"strings"
	"testing"
)

// TestVersionHasTheCommit checks that the version contains the commit that the go command recorded.
func TestVersionHasTheCommit(t *testing.T) {
	setting := func(key, value string) debug.BuildSetting { return debug.BuildSetting{Key: key, Value: value} }
	for _, c := range []struct {
		settings []debug.BuildSetting
		want     string
	}{
		{nil, "holdfast v1.2.3 (go"},
		{[]debug.BuildSetting{setting("vcs.modified", "true")}, "holdfast v1.2.3 (go"},
		{[]debug.BuildSetting{setting("vcs.revision", "0a1b2c"), setting("vcs.modified", "false")}, "holdfast v1.2.3 (commit 0a1b2c, go"},
		{[]debug.BuildSetting{setting("vcs.revision", "0a1b2c3d4e5f60718293"), setting("vcs.modified", "true")}, "holdfast v1.2.3 (commit 0a1b2c3d4e5f with changes, go"},
	} {
		info := &debug.BuildInfo{Settings: c.settings}
		info.Main.Version = "v1.2.3"
		if got := versionOf(info).String(); !strings.HasPrefix(got, c.want) {
			t.Errorf("%v: %q, want %q", c.settings, got, c.want)
		}
	}
	if got := versionOf(nil).String(); !strings.HasPrefix(got, "holdfast devel (go") {
		t.Errorf("without a note: %q", got)
	}
}
