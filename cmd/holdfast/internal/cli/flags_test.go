//go:build unix

package cli

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "add what is new to testdata/flags.txt")

// TestFlags compares all commands and flags with the list on which scripts rely. Add new ones to it
// with -update. A line in the list is a promise: if you must break it, delete the line by hand.
func TestFlags(t *testing.T) {
	file := filepath.Join("testdata", "flags.txt")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	promised := strings.Split(strings.TrimSpace(string(data)), "\n")
	present := allFlags(Tree())
	missing := func(from, in []string) []string {
		return slices.DeleteFunc(slices.Clone(from), func(line string) bool { return slices.Contains(in, line) })
	}
	for _, line := range missing(promised, present) {
		t.Errorf("%s: it is there no more, or takes another argument: scripts rely on it", line)
	}
	added := missing(present, promised)
	if *update {
		all := append(promised, added...)
		slices.Sort(all)
		if err := os.WriteFile(file, []byte(strings.Join(all, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, line := range added {
		t.Errorf("%s: it is new: go test ./internal/cli -run TestFlags -update adds it to %s", line, file)
	}
}

// allFlags returns a line for each command, each alias, and each flag with its letter, its names in
// flock(1) and its type.
func allFlags(cmd *cobra.Command) (lines []string) {
	path := cmd.CommandPath()
	lines = append(lines, path)
	for _, alias := range cmd.Aliases {
		lines = append(lines, path+" = "+alias)
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		line := path + " --" + f.Name
		if f.Shorthand != "" {
			line += " -" + f.Shorthand
		}
		for _, flock := range slices.Backward(slices.Sorted(maps.Keys(flockNames))) {
			if flock != f.Name && cmd.Flags().Lookup(flock) == f {
				line += " --" + flock
			}
		}
		if f.Value.Type() != "bool" {
			line += " " + f.Value.Type()
		}
		lines = append(lines, line)
	})
	for _, sub := range cmd.Commands() {
		lines = append(lines, allFlags(sub)...)
	}
	return lines
}

// TestFlagsForSpecialCases checks that their heading stands below the heading of the flags.
func TestFlagsForSpecialCases(t *testing.T) {
	found := 0
	for _, cmd := range Tree().Commands() {
		var text strings.Builder
		cmd.SetOut(&text)
		_ = cmd.Help() // a strings.Builder takes everything
		before, _, ok := strings.Cut(text.String(), "\nFlags for special cases:\n")
		if !ok {
			continue
		}
		found++
		if !strings.Contains(before, "\nFlags:\n") {
			t.Errorf("%s: the heading is above the flags in\n%s", cmd.CommandPath(), text.String())
		}
	}
	if found < 4 {
		t.Errorf("%d commands have such flags: want more", found)
	}
}

// TestAllTimesAreReadAlike checks that every flag that takes a time is made by
// durationVar.
func TestAllTimesAreReadAlike(t *testing.T) {
	found := 0
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() != "duration" {
				return
			}
			found++
			if _, ok := f.Value.(*durationValue); !ok {
				t.Errorf("%s --%s: it does not take bare seconds", cmd.CommandPath(), f.Name)
			}
		})
		for _, sub := range cmd.Commands() {
			look(sub)
		}
	}
	look(Tree())
	if found < 10 {
		t.Errorf("%d flags take a time: want more", found)
	}
	fmt.Fprintf(t.Output(), "%d flags take a time\n", found)
}
