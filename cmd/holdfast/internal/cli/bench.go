package cli

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/bench"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/show"
)

func (a *app) benchCommand() *cobra.Command {
	var whole time.Duration
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure what locks in the store cost, from this machine",
		Long: `Bench measures the latency of acquire and release, their throughput with 1, 16 and 256
workers, and hand-overs to a waiting client.

It loads the store as much as it can, which slows down other clients. It uses names of its own,
and releases them even when it is interrupted; if it is killed they expire after 3 s. Run it
where your programs run.`,
		Example: `  holdfast bench --store redis://redis.internal:6379
  holdfast bench --for 3s --json | jq '.throughput[0].acquire_release.p99_us'`,
		Args: words(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return untilSignal(cmd.Context(), func(ctx context.Context) error { return a.bench(ctx, whole) })
		},
	}
	durationVar(cmd.Flags(), &whole, "for", 12*time.Second, limits{time.Second, 5 * time.Minute}, "how long to measure in all")
	return a.withJSON(cmd)
}

// A benchView is the result of bench.
type benchView struct {
	Store      string `json:"store"` // without credentials
	Processors int    `json:"processors"`
	Version    string `json:"version"`
	bench.Result
}

// bench runs the benchmark and prints its result.
func (a *app) bench(ctx context.Context, whole time.Duration) error {
	engine, err := a.session().open(ctx)
	if err != nil {
		return err
	}
	defer engine.Close()
	second := engine
	if !endsWithUs(a.choice) {
		if second, err = a.choice.Open(ctx); err != nil {
			return openError(err)
		}
		defer second.Close()
	}
	result, err := bench.Run(ctx, engine, second, whole)
	if len(result.Load) == 0 {
		return exit.FromStore(err)
	}
	v := benchView{a.choice.Public(), runtime.NumCPU(), currentVersion().Version, result}
	return cmp.Or(a.answer(v, v.String()), exit.FromStore(err))
}

// String returns the table for people.
func (v benchView) String() string {
	rows := [][]string{{"", "p50", "p95", "p99", ""}}
	row := func(what string, l bench.Latency, note string) {
		us := func(n int64) string { return show.ASCII((time.Duration(n) * time.Microsecond).String()) }
		rows = append(rows, []string{what, us(l.P50), us(l.P95), us(l.P99), note})
	}
	row("acquire", v.Load[0].Acquire, "")
	row("release", v.Load[0].Release, "")
	for _, t := range v.Load {
		note := fmt.Sprintf("%d a second", t.PerS)
		if t.Failed > 0 {
			note += fmt.Sprintf(", %d failed", t.Failed)
		}
		row(fmt.Sprintf("both, by %d", t.Workers), t.Pair, note)
	}
	if v.HandOver.Count > 0 {
		row("hand-over to a waiter", v.HandOver, "")
	}
	return fmt.Sprintf("%s, from %d processors, holdfast %s\n\n%s\nThe machine that measures counts as much as the store.\n",
		show.Plain(v.Store), v.Processors, v.Version, show.Columns(2, rows))
}
