package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/holdfast-locks/holdfast/systest/bench/report"
)

// The files of a report, without the pictures.
const (
	dataFile = "bench.json"
	pageFile = "README.md"
	whyFile  = "why.md" // explains the missed goals; written by a person
)

// earlier returns the run in the directory of the report, or nil.
func (c *config) earlier() (*report.Run, error) {
	r, err := read(c.out)
	if c.out == "" || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return r, err
}

// read returns the run in a directory.
func read(dir string) (*report.Run, error) {
	path := filepath.Join(dir, dataFile)
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := report.ReadJSON(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// redraw writes the report of an earlier run again.
func (c *config) redraw() error {
	r, err := read(c.out)
	if err != nil {
		return err
	}
	return c.write(r)
}

// compare prints the ratios of a run to an earlier one.
func (c *config) compare() error {
	before, err := read(c.before)
	if err != nil {
		return err
	}
	after, err := read(c.out)
	if err != nil {
		return err
	}
	return report.Compare(os.Stdout, before, after, own)
}

// write writes the report, to the directory or to standard output.
func (c *config) write(r *report.Run) error {
	r.Summarize()
	r.Verdicts = r.Judge(goals())
	if c.out == "" {
		return r.WriteMarkdown(os.Stdout, false, "")
	}
	if err := os.MkdirAll(c.out, 0o755); err != nil {
		return err
	}
	why, err := os.ReadFile(filepath.Join(c.out, whyFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = writeFile(filepath.Join(c.out, dataFile), r.WriteJSON)
	err = errors.Join(err, writeFile(filepath.Join(c.out, pageFile), func(w io.Writer) error {
		return r.WriteMarkdown(w, true, string(why))
	}))
	for i := range r.Workloads {
		w := &r.Workloads[i]
		err = errors.Join(err, writeFile(filepath.Join(c.out, w.Name+".svg"), func(to io.Writer) error { return w.WriteSVG(to, own) }))
	}
	if len(why) == 0 {
		askWhy(os.Stderr, r.Verdicts, c.out)
	}
	return err
}

// askWhy lists the goals that are not met, as a start for why.md.
func askWhy(to io.Writer, verdicts []report.Verdict, dir string) {
	said := false
	for _, v := range verdicts {
		if v.Met {
			continue
		}
		if !said {
			fmt.Fprintf(to, "\nSay in %s why these fall short, and repeat this with -draw:\n\n", filepath.Join(dir, whyFile))
			said = true
		}
		fmt.Fprintf(to, "- **%s**: %s, goal %s: ...\n", v.Title, report.Figure(v.Figure), v.Bound())
	}
}

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
