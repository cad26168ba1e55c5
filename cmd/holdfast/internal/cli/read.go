//go:build unix

package cli

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/render"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/wire"
)

func (a *app) checkCommand() *cobra.Command {
	var quiet bool
	cmd := &cobra.Command{
		Use:   "check NAME",
		Short: "Tell by the exit status whether a lock is held: 0 held, 1 not",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			lock, err := a.inspect(cmd, args[0])
			if err != nil {
				return err
			}
			text, status := render.Line(lock), exit.Not
			if quiet {
				text = ""
			}
			if len(lock.Live()) > 0 {
				status = exit.OK
			}
			return a.answerWith(status, wire.WholeLockOf(lock), text)
		},
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print nothing")
	return a.withJSON(cmd)
}

func (a *app) showCommand() *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "show NAME",
		Short: "Show who holds a lock, for how long, who waits for it, and who lost it",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			lock, broken, err := a.inspectAll(cmd, args[0])
			if err != nil {
				return err
			}
			return a.answer(wire.LockDetailsOf(lock, broken), render.Lock(lock, broken))
		},
	})
}

func (a *app) listCommand() *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:     "ls [PREFIX]",
		Aliases: []string{"list"},
		Short:   "List the locks that are held or waited for, all or those whose names begin with PREFIX",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			locks, err := a.list(cmd, strings.Join(args, ""))
			if err != nil {
				return err
			}
			views := make([]wire.Lock, len(locks))
			for i, lock := range locks {
				views[i] = wire.LockOf(lock)
			}
			return a.answer(views, render.Table(locks))
		},
	})
}

func (a *app) versionCommand() *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := currentVersion()
			return a.answer(v, v.String()+"\n")
		},
	})
}

// A versionView is a version as JSON, and in words.
type versionView struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (v versionView) String() string {
	return fmt.Sprintf("holdfast %s (%s, %s)", v.Version, v.Go, v.Platform)
}

// currentVersion returns the version that the go command has built.
func currentVersion() versionView {
	v := versionView{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		v.Version = strings.Trim(info.Main.Version, "()")
	}
	return v
}

// inspect asks the store about one name.
func (a *app) inspect(cmd *cobra.Command, name string) (lock driver.Lock, err error) {
	err = a.withClient(cmd.Context(), nil, func(c *holdfast.Client, _ string) error {
		lock, err = c.Inspect(cmd.Context(), name)
		return exit.FromStore(err)
	})
	return lock, err
}

// inspectAll asks about one name, and who lost it. A store that cannot break locks
// remembers nobody.
func (a *app) inspectAll(cmd *cobra.Command, name string) (lock driver.Lock, broken []holdfast.Broken, err error) {
	err = a.withClient(cmd.Context(), nil, func(c *holdfast.Client, _ string) error {
		if lock, err = c.Inspect(cmd.Context(), name); err != nil {
			return exit.FromStore(err)
		}
		if broken, err = c.Breaks(cmd.Context(), name); errors.Is(err, holdfast.ErrUnsupported) {
			err = nil
		}
		return exit.FromStore(err)
	})
	return lock, broken, err
}

// list asks the store for the names in use, and sorts them.
func (a *app) list(cmd *cobra.Command, prefix string) (locks []driver.Lock, err error) {
	err = a.withClient(cmd.Context(), nil, func(c *holdfast.Client, _ string) error {
		for lock, err := range c.List(cmd.Context(), prefix) {
			if err != nil {
				return exit.FromStore(err)
			}
			locks = append(locks, lock)
		}
		return nil
	})
	slices.SortFunc(locks, func(x, y driver.Lock) int { return strings.Compare(x.Name, y.Name) })
	return locks, err
}
