package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/systest/bench/peer"
	"github.com/holdfast-locks/holdfast/systest/bench/report"
)

func main() {
	if err := begin(os.Args[1:], peer.All()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// begin runs this process in its role, with these peers.
func begin(args []string, peers []peer.Peer) error {
	if len(args) == 2 {
		switch args[0] {
		case crewRole:
			return beCrew(args[1], peers)
		case etcdRole, etcdNoFsyncRole:
			return serveEtcd(args[1], args[0] == etcdRole)
		}
	}
	c, err := parse(args)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	switch {
	case c.list:
		list(os.Stdout, peers)
		return nil
	case c.draw:
		return c.redraw()
	case c.before != "":
		return c.compare()
	}
	return live(func(l *life) error { return c.benchmark(ctx, l, peers) })
}

// A config holds the flags.
type config struct {
	rounds      int
	length      time.Duration
	quick       bool
	scale       bool
	only, peers *regexp.Regexp
	out         string
	commit      string
	draw        bool
	before      string
	list        bool
	command     string
}

// The settings of the quick form, which flags override.
const (
	quickRounds = 3
	quickLength = 100 * time.Millisecond
)

func parse(args []string) (*config, error) {
	c := new(config)
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&c.rounds, "rounds", 7, "how many interleaved rounds")
	flags.DurationVar(&c.length, "for", time.Second, "length of one sample, where it counts by time")
	flags.BoolVar(&c.quick, "quick", false, "3 rounds of 100ms, without peers with default settings and without long workloads")
	flags.BoolVar(&c.scale, "scale", false, "workloads of very great sizes, and nothing else")
	only := flags.String("only", "", "a regular expression for names of workloads; all by default")
	peers := flags.String("peers", "", "the same for peers")
	flags.StringVar(&c.out, "out", "", "directory for bench.json, README.md and the pictures; without it the tables are printed")
	flags.StringVar(&c.commit, "commit", "unknown", "what is measured, for the report")
	flags.BoolVar(&c.draw, "draw", false, "measure nothing, and write tables and pictures again from bench.json and why.md in the directory")
	flags.StringVar(&c.before, "before", "", "measure nothing, and print the ratios of the run in -out to an earlier one in this directory")
	flags.BoolVar(&c.list, "list", false, "print the workloads and the peers")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	c.command = command(flags)
	if given := given(flags); c.quick {
		if !slices.Contains(given, "rounds") {
			c.rounds = quickRounds
		}
		if !slices.Contains(given, "for") {
			c.length = quickLength
		}
	}
	var err, err2 error
	c.only, err = regexp.Compile("^(" + *only + ")")
	c.peers, err2 = regexp.Compile("^(" + *peers + ")")
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case c.rounds < 1 || c.length <= 0:
		return nil, errors.New("-rounds and -for must be positive")
	case (c.draw || c.before != "") && c.out == "":
		return nil, errors.New("-draw and -before need the directory of a run, -out")
	}
	return c, errors.Join(err, err2)
}

// given returns the names of the flags that were given.
func given(flags *flag.FlagSet) (names []string) {
	flags.Visit(func(f *flag.Flag) { names = append(names, f.Name) })
	return names
}

// command returns the command that repeats a run, without the flags for the results' directory
// and the commit.
func command(flags *flag.FlagSet) string {
	var args []string
	flags.Visit(func(f *flag.Flag) {
		switch value := f.Value.String(); {
		case f.Name == "out" || f.Name == "commit":
		case value == "true":
			args = append(args, "-"+f.Name)
		default:
			args = append(args, fmt.Sprintf("-%s %s", f.Name, quote(value)))
		}
	})
	if len(args) == 0 {
		return "make bench"
	}
	return fmt.Sprintf("make bench BENCH='%s'", strings.Join(args, " "))
}

// quote quotes a value for make, and for the shell that make calls.
func quote(value string) string {
	if strings.ContainsAny(value, `|$()*?[]^ `) {
		value = `"` + value + `"`
	}
	return strings.ReplaceAll(value, "$", "$$")
}

// list prints the workloads and the peers.
func list(to io.Writer, peers []peer.Peer) {
	for _, w := range slices.Concat(workloads(), scales()) {
		fmt.Fprintf(to, "%-18s %s\n", w.name, w.title)
	}
	fmt.Fprintln(to)
	for _, p := range peers {
		fmt.Fprintf(to, "%-24s %s\n", p.Name, p.Settings)
	}
}

// takes and takesPeer report whether a workload or a peer was chosen.
func (c *config) takes(w workload) bool {
	return c.only.MatchString(w.name) && (!c.quick || !w.slow) && c.scale == w.scale
}
func (c *config) takesPeer(p peer.Peer) bool {
	return c.peers.MatchString(p.Name) && (!c.quick || !p.Default)
}

// benchmark runs the chosen workloads, and writes the report. After an interruption it reports
// the results so far.
func (c *config) benchmark(ctx context.Context, l *life, peers []peer.Peer) error {
	b := &bench{
		stores: &inventory{life: l, running: map[peer.Store]store{}}, dir: l.TempDir(),
		rounds: c.rounds, length: c.length, log: os.Stderr,
	}
	for _, p := range peers {
		if c.takesPeer(p) {
			b.peers = append(b.peers, p)
		}
	}
	begun := time.Now()
	r := &report.Run{
		Date: begun.UTC().Format(time.DateOnly), Commit: c.commit, Command: c.command,
		Machine: machine(), Cores: runtime.NumCPU(), Versions: versions(), Rounds: c.rounds, Seconds: c.length.Seconds(),
		Hours: []string{begun.UTC().Format("2006-01-02T15")},
	}
	earlier, err := c.earlier()
	if err == nil && earlier != nil {
		err = earlier.Add(&report.Run{Commit: r.Commit, Machine: r.Machine, Seconds: r.Seconds}) // refuses a mismatch before the measurement
	}
	if err != nil {
		return err
	}
	var failed error
	for _, w := range slices.Concat(workloads(), scales()) {
		if failed != nil || !c.takes(w) {
			continue
		}
		result, err := b.measure(ctx, w)
		r.Workloads, failed = append(r.Workloads, result), err
	}
	if len(r.Workloads) == 0 {
		return errors.New("-only chooses no workload: see -list")
	}
	if s, ok := b.stores.running[peer.Redis].(*redisStore); ok {
		name, version := s.version()
		r.Versions[name] = version
	}
	fmt.Fprintf(os.Stderr, "measured in %s\n", time.Since(begun).Round(time.Second))
	if earlier != nil {
		failed = errors.Join(failed, earlier.Add(r))
		r = earlier
	}
	return errors.Join(failed, c.write(r))
}
