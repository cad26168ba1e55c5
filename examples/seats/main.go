//go:build unix

package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// workerArg makes this program a worker instead of the director.
const workerArg = "worker"

// The exit statuses other than 0.
const (
	exitNotShown = 1 // the result is not what the program is there to show
	exitFailed   = 2 // it could not run
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:])
	stop()
	os.Exit(status)
}

func run(ctx context.Context, args []string) int {
	if len(args) == 1 && args[0] == workerArg {
		if err := runWorker(ctx, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "seats worker:", err)
			return exitFailed
		}
		return 0
	}
	opts, err := parseFlags(args)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	var result summary
	if err == nil {
		result, err = opts.play(ctx, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "seats:", err)
		return exitFailed
	}
	if problem := result.problem(); problem != "" {
		fmt.Fprintln(os.Stderr, "seats:", problem)
		return exitNotShown
	}
	return 0
}

// The values of -fencing.
const (
	fencingOn    = "on"
	fencingWrite = "write" // a check with each write, and none before reads
	fencingOff   = "off"
)

// options are the flags.
type options struct {
	rounds, workers int
	fencing         string
	ttl             time.Duration
	store, postgres string
}

func parseFlags(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("seats", flag.ContinueOnError)
	flags.IntVar(&o.rounds, "rounds", 3, "how many seats are sold")
	flags.IntVar(&o.workers, "workers", 3, "how many worker processes sell them")
	flags.StringVar(&o.fencing, "fencing", fencingOn, "when the database checks the fencing tokens: on (before reads, and with writes), write (with writes only) or off")
	flags.DurationVar(&o.ttl, "ttl", 300*time.Millisecond, "how long a lease lasts without renewal")
	flags.StringVar(&o.store, "store", "", "URL of the locks, as holdfast takes it: redis://host:port, quorum+redis://a,b,c, ... (default a temporary file)")
	flags.StringVar(&o.postgres, "postgres", "", "connection string of a PostgreSQL for the bookings (default a temporary SQLite file)")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unknown argument %q", flags.Arg(0))
	case o.rounds < 1:
		return o, fmt.Errorf("-rounds %d: want 1 or more", o.rounds)
	case o.workers < 2:
		return o, fmt.Errorf("-workers %d: want 2 or more", o.workers)
	case strings.HasPrefix(o.store, "memory:"):
		return o, fmt.Errorf("-store %s: the workers are processes of their own, and cannot share memory", o.store)
	case o.fencing != fencingOn && o.fencing != fencingWrite && o.fencing != fencingOff:
		return o, fmt.Errorf("-fencing %q: want on, write or off", o.fencing)
	}
	return o, nil
}

// play runs all rounds and returns the contents of the database at the end.
func (o options) play(ctx context.Context, out io.Writer) (result summary, err error) {
	result = summary{Fencing: o.fencing, Rounds: o.rounds}
	dir, err := os.MkdirTemp("", "seats")
	if err != nil {
		return result, err
	}
	defer os.RemoveAll(dir)
	data := database{File: filepath.Join(dir, "theatre.db")}
	if o.postgres != "" {
		data = database{PostgreSQL: o.postgres, Schema: "seats_" + strings.ToLower(rand.Text())}
	}
	if o.store == "" {
		o.store = (&url.URL{Scheme: "sqlite", Path: filepath.Join(dir, "locks.db")}).String()
	}
	db, err := data.open()
	if err != nil {
		return result, err
	}
	defer db.Close()
	if err := data.create(ctx, db); err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, data.drop(context.WithoutCancel(ctx), db)) }()
	d := &director{ttl: o.ttl, timeline: &timeline{out: out, start: time.Now()}}
	if err := o.direct(ctx, d, data); err != nil {
		return result, err
	}
	result.Refused = d.refused
	if err := result.count(ctx, db); err != nil {
		return result, err
	}
	fmt.Fprintf(out, "\n%s\n", result)
	return result, json.NewEncoder(out).Encode(result)
}

// direct starts the workers, plays the rounds, and ends the workers.
func (o options) direct(ctx context.Context, d *director, data database) error {
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	err := o.start(ctx, d, data)
	for n := 0; n < o.rounds && err == nil; n++ {
		err = d.round(ctx, n)
	}
	if err != nil {
		kill() // a worker may be stopped, or wait for an order that was not sent
	}
	for _, p := range d.workers {
		if ended := p.close(); err == nil {
			err = ended
		}
	}
	return err
}

func (o options) start(ctx context.Context, d *director, data database) error {
	for n := range o.workers {
		p, err := startProcess(ctx, setup{
			Worker: fmt.Sprintf("worker-%d", n+1), Store: o.store, Data: data, TTL: o.ttl, Fencing: o.fencing,
		})
		if err != nil {
			return err
		}
		d.workers = append(d.workers, p)
	}
	return nil
}
