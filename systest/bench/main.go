package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/systest/bench/peer"
	"github.com/holdfast-locks/holdfast/systest/bench/report"
)

func main() {
	if err := begin(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// begin does what this process is for.
func begin(args []string) error {
	if len(args) == 2 {
		switch args[0] {
		case crewRole:
			return beCrew(args[1])
		case etcdRole:
			return serveEtcd(args[1])
		}
	}
	c, err := parse(args)
	if err != nil || c.list {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if c.draw != "" {
		return c.redraw()
	}
	return live(func(l *life) error { return c.benchmark(ctx, l) })
}

// A config is what the command line says.
type config struct {
	rounds      int
	length      time.Duration
	only, peers *regexp.Regexp
	out         string
	commit      string
	draw        string
	list        bool
	command     string
}

func parse(args []string) (*config, error) {
	c := &config{command: strings.Join(append([]string{"go run ."}, args...), " ")}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&c.rounds, "rounds", 7, "how many interleaved rounds")
	flags.DurationVar(&c.length, "for", time.Second, "length of one sample, where it counts by time")
	only := flags.String("only", "", "a regular expression for names of workloads; all by default")
	peers := flags.String("peers", "", "the same for peers")
	flags.StringVar(&c.out, "out", "", "directory for bench.json, README.md and the pictures; without it the tables are printed")
	flags.StringVar(&c.commit, "commit", "unknown", "what is measured, for the report")
	flags.StringVar(&c.draw, "draw", "", "read a bench.json and write tables and pictures again, measuring nothing")
	flags.BoolVar(&c.list, "list", false, "print the workloads and the peers")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	var err, err2 error
	c.only, err = regexp.Compile("^(" + *only + ")")
	c.peers, err2 = regexp.Compile("^(" + *peers + ")")
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case c.rounds < 1 || c.length <= 0:
		return nil, errors.New("-rounds and -for must be positive")
	}
	if c.list {
		list(os.Stdout)
	}
	return c, errors.Join(err, err2)
}

// list writes what there is to choose from.
func list(to io.Writer) {
	for _, w := range workloads() {
		fmt.Fprintf(to, "%-18s %s\n", w.name, w.title)
	}
	fmt.Fprintln(to)
	for _, p := range peer.All() {
		fmt.Fprintf(to, "%-22s %s\n", p.Name, p.Settings)
	}
}

// benchmark runs what was chosen, and writes the report. What was measured when
// it is interrupted is reported, too.
func (c *config) benchmark(ctx context.Context, l *life) error {
	b := &bench{stores: &inventory{life: l}, rounds: c.rounds, length: c.length, log: os.Stderr}
	for _, p := range peer.All() {
		if c.peers.MatchString(p.Name) {
			b.peers = append(b.peers, p)
		}
	}
	r := &report.Run{
		Date: time.Now().UTC().Format(time.DateOnly), Commit: c.commit, Command: c.command,
		Machine: machine(), Cores: runtime.NumCPU(), Versions: versions(), Rounds: c.rounds, Seconds: c.length.Seconds(),
	}
	var failed error
	for _, w := range workloads() {
		if failed != nil || !c.only.MatchString(w.name) {
			continue
		}
		result, err := b.run(ctx, w)
		r.Workloads, failed = append(r.Workloads, result), err
	}
	if s := b.stores.redis; s != nil {
		name, version := s.version()
		r.Versions[name] = version
	}
	return errors.Join(failed, c.write(r))
}

// redraw writes the report of an earlier run again.
func (c *config) redraw() error {
	f, err := os.Open(c.draw)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := report.ReadJSON(f)
	if err != nil {
		return fmt.Errorf("%s: %w", c.draw, err)
	}
	return c.write(r)
}

// write writes the report.
func (c *config) write(r *report.Run) error {
	r.Summarize()
	if c.out == "" {
		return r.WriteMarkdown(os.Stdout, goals(), false)
	}
	if err := os.MkdirAll(c.out, 0o755); err != nil {
		return err
	}
	err := writeFile(filepath.Join(c.out, "bench.json"), r.WriteJSON)
	err = errors.Join(err, writeFile(filepath.Join(c.out, "README.md"), func(w io.Writer) error {
		return r.WriteMarkdown(w, goals(), true)
	}))
	for i := range r.Workloads {
		w := &r.Workloads[i]
		err = errors.Join(err, writeFile(filepath.Join(c.out, w.Name+".svg"), func(to io.Writer) error { return w.WriteSVG(to, own) }))
	}
	return err
}

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
