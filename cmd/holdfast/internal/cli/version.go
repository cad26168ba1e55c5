package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Example: `  holdfast version
  holdfast version --json | jq -r .commit`,
		Args: words(0, 0),
		RunE: func(*cobra.Command, []string) error { return a.printVersion() },
	})
}

func (a *app) printVersion() error {
	v := currentVersion()
	return a.answer(v, v.String()+"\n")
}

// A versionView is a version for JSON. String returns it in words.
type versionView struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`   // "" if it was not built in a checkout
	Modified bool   `json:"modified,omitempty"` // the checkout had changes that were not committed
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (v versionView) String() string {
	commit := v.Commit[:min(len(v.Commit), 12)]
	switch {
	case v.Modified:
		commit = "commit " + commit + " with changes, "
	case commit != "":
		commit = "commit " + commit + ", "
	}
	return fmt.Sprintf("holdfast %s (%s%s, %s)", v.Version, commit, v.Go, v.Platform)
}

// currentVersion returns the version that the go command has recorded in this program.
func currentVersion() versionView {
	info, _ := debug.ReadBuildInfo()
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) versionView {
	v := versionView{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info == nil {
		return v
	}
	if info.Main.Version != "" {
		v.Version = strings.Trim(info.Main.Version, "()")
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	v.Modified = v.Modified && v.Commit != ""
	return v
}
