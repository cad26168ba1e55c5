package systest

import (
	"context"
	"errors"
	"math/rand/v2"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/stores"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

// A farewell is what a program reports when it ends.
type farewell struct {
	Runs   int    // of the function of Do
	Errors string // except that its context ended
}

// workUntilSignal is a job: a program like the one in the README, which works under the lock again
// and again until TERM ends its context.
func workUntilSignal(ctx context.Context, j traffic.Job) (any, error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	j.Out("begun")
	var said farewell
	err := workUnderLock(ctx, j, &said)
	if err != nil && !errors.Is(err, context.Canceled) {
		said.Errors = err.Error()
	}
	return said, nil
}

func workUnderLock(ctx context.Context, j traffic.Job, said *farewell) (err error) {
	engine, err := traffic.Open(ctx, traffic.Redislock, j.Store)
	if err != nil {
		return err
	}
	defer engine.Close()
	client, err := holdfast.New(engine, &holdfast.Options{SharedEngine: true})
	if err != nil {
		return err
	}
	defer func() {
		if closed := client.Close(); closed != nil {
			err = errors.New(closed.Error()) // without the errors that it wraps
		}
	}()
	for {
		err := client.Do(ctx, j.Name, nil, func(ctx context.Context, _ *holdfast.Lease) error {
			said.Runs++
			select {
			case <-time.After(rand.N(2 * j.Hold)):
			case <-ctx.Done():
			}
			return ctx.Err()
		})
		if err != nil {
			return err
		}
	}
}

// TestEndedProgramLeavesNothing checks that a program ended by a signal leaves neither a lease nor
// a place behind, and reports no false error. INVARIANT I5.
func TestEndedProgramLeavesNothing(t *testing.T) {
	s := newStore(t)
	file := "sqlite://" + t.TempDir() + "/locks.db"
	for _, on := range []struct {
		store, url string
		engine     driver.Engine
	}{
		{"redis", s.server.URL, s.engine},
		{"sqlite", file, drivertest.Open(t, stores.Open, file)},
	} {
		t.Run(on.store, func(t *testing.T) {
			leases, places, errs, runs := 0, 0, 0, 0
			count := soak.Count(25, 500)
			for range count {
				job := traffic.Job{Job: "work until signal", Store: on.url, Name: "job", Hold: 5 * time.Millisecond}
				programs := []*traffic.Crew{traffic.Start(t, job), traffic.Start(t, job)} // one works, the other waits
				for _, p := range programs {
					var begun string
					p.Begin()
					p.Next(&begun)
				}
				time.Sleep(rand.N(100 * time.Millisecond)) // so that they are in the middle of something
				for _, p := range programs {
					p.Term()
				}
				for _, p := range programs {
					var said farewell
					if p.Next(&said); said.Errors != "" {
						errs++
						t.Errorf("a program that was ended says: %s", said.Errors)
					}
					runs += said.Runs
				}
				lock, err := on.engine.Inspect(t.Context(), "job")
				if err != nil {
					t.Fatal(err)
				}
				leases, places = leases+len(lock.Holders), places+lock.QueueLength
			}
			report.Row(t, "TERM in the middle of a program like the README's: "+on.store, "no lease and no place left, no false error",
				"%d programs, %d runs: %d leases and %d places left, %d errors", 2*count, runs, leases, places, errs)
			if leases+places > 0 {
				t.Errorf("%d leases and %d places stayed behind", leases, places)
			}
		})
	}
}
