// Release makes a version of holdfast: see scripts/release.sh.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const ours = "github.com/holdfast-locks/holdfast"

// A release is one version on its way from a commit to files. All work is done in a clone,
// so that a failure leaves the tree as it was.
type release struct {
	tree    string // the repository
	version string // with the v
	key     string // the file of the private key, or "" in a trial
	dry     bool   // no commit and no tag for the tree
	rebuild bool   // of tags that exist
	ci      func() error
	only    []platform

	work    string    // scratch
	commit  string    // that the tags name
	time    time.Time // of the commit, and of all files
	modules []module  // released ones, each after those that it requires
	files   string    // becomes dist/VERSION
}

func main() {
	var r release
	flag.StringVar(&r.tree, "tree", ".", "the `DIRECTORY` of the repository")
	flag.StringVar(&r.key, "key", "", "sign with the private key in this `FILE`, which is outside of the tree")
	flag.BoolVar(&r.dry, "dry-run", false, "do all but make ci release, the commit and the tags")
	flag.BoolVar(&r.rebuild, "rebuild", false, "make the files again, of tags that exist")
	flag.Func("platforms", "in a trial, make only those in this `LIST`, such as linux/amd64,linux/arm64", r.choose)
	licences := flag.Bool("third-party", false, "only write the list of linked modules and their licences")
	flag.Parse()
	r.version = flag.Arg(0)
	if flag.NArg() > 1 || len(r.only) > 0 && !r.dry {
		flag.Usage()
		os.Exit(2)
	}
	if len(r.only) == 0 {
		r.only = platforms
	}
	r.ci = func() error {
		cmd := exec.Command("make", "ci", "release")
		cmd.Dir, cmd.Stdout, cmd.Stderr = r.tree, os.Stdout, os.Stderr
		return cmd.Run()
	}
	run := r.run
	if *licences {
		run = r.writeThirdParty
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run makes the version. Until the last two steps it writes into scratch only.
func (r *release) run() (err error) {
	if r.tree, err = filepath.Abs(r.tree); err != nil {
		return err
	}
	if r.work == "" {
		if r.work, err = os.MkdirTemp("", "holdfast-release-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"check", r.check},
		{"clone and tag", r.prepare},
		{"pack the modules", r.pack},
		{"install by the version", r.try},
		{"build and pack", r.makeFiles},
		{"move to dist", r.move},
		{"commit and tag", r.publish},
	} {
		began := time.Now()
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Printf("release: %s: %.0fs\n", step.name, time.Since(began).Seconds())
	}
	return nil
}

// move puts the files to dist/VERSION, in place of an earlier trial's.
func (r *release) move() error {
	to := filepath.Join(r.tree, "dist", r.version)
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // to be read by everybody
		return err
	}
	return os.CopyFS(to, os.DirFS(r.files))
}

// choose takes platforms by their names.
func (r *release) choose(list string) error {
	for name := range strings.SplitSeq(list, ",") {
		p := platform{}
		p.os, p.arch, _ = strings.Cut(name, "/")
		if !slices.Contains(platforms, p) {
			return fmt.Errorf("there is no %s", name)
		}
		r.only = append(r.only, p)
	}
	return nil
}
