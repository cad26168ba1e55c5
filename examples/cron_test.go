package examples

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// TestCron checks that the schedules of github.com/robfig/cron/v3 are schedules of Every, in their
// own zone when summer time begins or ends, and that replicas that begin at different times agree
// on the times of "@every".
func TestCron(t *testing.T) {
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	parsed := func(spec string) holdfast.Schedule {
		s, err := cron.ParseStandard(spec)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, c := range []struct {
		schedule holdfast.Schedule
		begin    time.Time
		want     []string
	}{
		{parsed("CRON_TZ=Europe/Berlin 30 7 * * *"), at("2026-03-28T06:00:00Z"), []string{"2026-03-28T06:30:00Z", "2026-03-29T05:30:00Z"}},
		// docs/every.md describes the days on which clocks change: no run in spring, two in autumn.
		{parsed("CRON_TZ=Europe/Berlin 30 2 * * *"), at("2026-03-28T01:00:00Z"), []string{"2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"}},
		{parsed("CRON_TZ=Europe/Berlin 30 2 * * *"), at("2026-10-24T22:30:00Z"), []string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"}},
		{parsed("0 3 * * *"), at("2026-03-28T22:00:00+01:00"), []string{"2026-03-29T03:00:00Z"}},
		{parsed("@every 90m"), at("2026-03-26T12:00:07Z"), []string{"2026-03-26T13:30:07Z", "2026-03-26T15:00:07Z"}},
		{cron.Every(90 * time.Minute), at("2026-03-26T12:00:07Z"), []string{"2026-03-26T13:30:07Z", "2026-03-26T15:00:07Z"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Until(c.begin))
			engine := mem.New(nil)
			ctx, cancel := context.WithCancel(t.Context())
			var mu sync.Mutex
			var got []string
			var replicas sync.WaitGroup
			for range 2 {
				client, err := holdfast.New(engine, nil)
				if err != nil {
					t.Fatal(err)
				}
				replicas.Go(func() {
					_ = client.Every(ctx, "job", c.schedule, nil, func(_ context.Context, run holdfast.EveryRun) error {
						mu.Lock()
						defer mu.Unlock()
						got = append(got, run.Scheduled.Format(time.RFC3339))
						return nil
					})
					_ = client.Close()
				})
				time.Sleep(5 * time.Second) // the next replica begins later
			}
			time.Sleep(time.Until(at(c.want[len(c.want)-1])) + time.Minute)
			cancel()
			replicas.Wait()
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("runs of %v, want %v", got, c.want)
			}
		})
	}
}
