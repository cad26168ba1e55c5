package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/bench"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

const (
	minBench = time.Second
	maxBench = 5 * time.Minute
)

func (a *app) benchCommand() *cobra.Command {
	var whole time.Duration
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure what locks in the store cost, from this machine",
		Long: `Bench measures round trips, the latency of acquire and release, their throughput with 1, 16
and 256 workers, hand-overs to a waiting client, and the renewal of 256 leases.

It loads the store as much as it can for the time of --for: think twice on a store in use. It
uses names of its own, and releases all of them even when it is interrupted; if it is killed
they end after 3 s. Run it where your programs run: the machine and the network count as much
as the store.

The exit status is 0, or one of those in holdfast --help.`,
		Example: `  holdfast bench --store redis://redis.internal:6379
  holdfast bench --for 3s --json | jq .acquire_release.p99_us`,
		Args: words(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if whole < minBench || whole > maxBench {
				return usage("bench: --for %s: want %s to %s", whole, minBench, maxBench)
			}
			return a.bench(cmd.Context(), whole)
		},
	}
	durationVar(cmd.Flags(), &whole, "for", 12*time.Second, "how long to measure in all")
	return a.withJSON(cmd)
}

// A benchView is what bench answers.
type benchView struct {
	Store      string `json:"store"` // without credentials
	Host       string `json:"host"`
	Platform   string `json:"platform"`
	Processors int    `json:"processors"`
	Version    string `json:"version"`
	DurationMS int64  `json:"duration_ms"`
	bench.Result
}

func (a *app) bench(ctx context.Context, whole time.Duration) error {
	ctx, caught := untilSignal(ctx)
	err := a.measure(ctx, whole)
	if s := caught(); s != 0 {
		return &exit.Error{Status: exit.Signal(int(s))}
	}
	return err
}

// measure runs the benchmark and prints its result.
func (a *app) measure(ctx context.Context, whole time.Duration) error {
	engine, choice, err := a.session().open(ctx)
	if err != nil {
		return err
	}
	defer engine.Close()
	second, err := choice.Open(ctx)
	if err != nil {
		return openError(err)
	}
	defer second.Close()
	if same, err := sameStore(ctx, engine, second); err != nil {
		return exit.FromStore(err)
	} else if !same { // a store inside this process
		second = engine
	}
	began := time.Now()
	result, err := bench.Run(ctx, engine, second, whole)
	if err != nil {
		return exit.FromStore(err)
	}
	host, _ := os.Hostname() // for people
	v := benchView{
		Store: choice.Public(), Host: host, Platform: runtime.GOOS + "/" + runtime.GOARCH, Processors: runtime.NumCPU(),
		Version: currentVersion().Version, DurationMS: time.Since(began).Milliseconds(), Result: result,
	}
	return a.answer(v, v.String())
}

// untilSignal returns a context that ends with the first signal, and a function that returns
// that signal. A second signal ends the program.
func untilSignal(ctx context.Context) (context.Context, func() syscall.Signal) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() { // ends with the first signal, or with the program
		s := <-signals
		signal.Stop(signals)
		cancel(signalError(s.(syscall.Signal)))
	}()
	return ctx, func() (s syscall.Signal) {
		if e := signalError(0); errors.As(context.Cause(ctx), &e) {
			s = syscall.Signal(e)
		}
		return s
	}
}

// A signalError is the cause of the end of a context.
type signalError syscall.Signal

func (s signalError) Error() string { return syscall.Signal(s).String() }

// sameStore reports whether two engines keep their locks in the same place.
func sameStore(ctx context.Context, one, other driver.Engine) (same bool, err error) {
	req := driver.AcquireRequest{Name: bench.Prefix + "open", LeaseID: lockinfo.NewLeaseID(), TTL: time.Second, Mode: lockinfo.Exclusive}
	req.Name += "-" + string(req.LeaseID)[:12]
	_, err = one.Acquire(ctx, req)
	defer func(unknown bool) { // even if ctx has ended; on failure the lease ends with its TTL
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), req.TTL)
		defer cancel()
		_ = one.Release(ctx, driver.ReleaseRequest{Name: req.Name, LeaseID: req.LeaseID, Cancel: unknown})
	}(err != nil)
	if err != nil {
		return false, err
	}
	lock, err := other.Inspect(ctx, req.Name)
	return len(lock.Holders) > 0, err
}

// String is the table for people.
func (v benchView) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, from %s (%s, %d processors), holdfast %s, in %s\n\n",
		show.Plain(v.Store), show.Plain(v.Host), v.Platform, v.Processors, v.Version, lockinfo.Span(time.Duration(v.DurationMS)*time.Millisecond))
	rows := [][]string{{"", "p50", "p95", "p99", ""}}
	row := func(what string, l bench.Latency, note string) {
		us := func(n int64) string { return (time.Duration(n) * time.Microsecond).String() }
		rows = append(rows, []string{what, us(l.P50), us(l.P95), us(l.P99), note})
	}
	row("round trip", v.RoundTrip, "")
	row("acquire", v.Acquire, "")
	row("release", v.Release, "")
	row("acquire and release", v.Pair, "")
	for _, t := range v.Throughput {
		note := fmt.Sprintf("%d a second", t.PerS)
		if t.Failed > 0 {
			note += fmt.Sprintf(", %d failed", t.Failed)
		}
		row(fmt.Sprintf("the same by %d", t.Workers), t.Pair, note)
	}
	row("hand-over to a waiter", v.HandOver, "")
	k := v.KeptAlive
	row("renewal", k.Renewal, fmt.Sprintf("%d leases of %s, held for %s: %d lost, %d renewals failed",
		k.Leases, time.Duration(k.TTLMS)*time.Millisecond, time.Duration(k.HeldMS)*time.Millisecond, k.Lost, k.Failed))
	b.WriteString(show.Columns(2, rows))
	b.WriteString("\nThe machine that measures counts as much as the store.\n")
	return b.String()
}
