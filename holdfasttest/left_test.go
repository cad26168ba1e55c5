package holdfasttest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/holdfasttest"
	"github.com/holdfast-locks/holdfast/internal/faketest"
)

// TestNothingLeft checks that a lease is not reported if it is released in another way than by
// Release, late, or while the store does not answer.
func TestNothingLeft(t *testing.T) {
	for name, test := range map[string]func(t testing.TB, k *holdfasttest.Kit){
		"left to be adopted": func(t testing.TB, k *holdfasttest.Kit) {
			l, err := k.Client.Acquire(t.Context(), "a", nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := l.Leave(); err != nil {
				t.Error(err)
			}
		},
		"handed over, and left to be adopted": func(t testing.TB, k *holdfasttest.Kit) {
			release, left := k.HoldElsewhere("a", time.Hour), make(chan error, 1)
			go func() {
				l, err := k.Client.Acquire(t.Context(), "a", nil)
				if err == nil {
					_, err = l.Leave()
				}
				left <- err
			}()
			k.AwaitWaiters("a", 1)
			release()
			if err := <-left; err != nil {
				t.Error(err)
			}
		},
		"do-once work": func(t testing.TB, k *holdfasttest.Kit) {
			_, err := k.Client.Once(t.Context(), "a", nil, func(context.Context, *holdfast.Lease) ([]byte, error) {
				return []byte("done"), nil
			})
			if err != nil {
				t.Error(err)
			}
		},
		"all of several": func(t testing.TB, k *holdfasttest.Kit) {
			all, err := k.Client.AcquireAll(t.Context(), []string{"a", "b"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := all.Release(t.Context()); err != nil {
				t.Error(err)
			}
		},
		"released to a broken store": func(t testing.TB, k *holdfasttest.Kit) {
			l := acquire(t, k.Client, "a", nil)
			k.BreakStore(errors.New("down"))
			_ = l.Release(t.Context())
		},
		"released when the test's context ends": func(t testing.TB, k *holdfasttest.Kit) {
			held := make(chan bool)
			go func() {
				_ = k.Client.Do(t.Context(), "a", nil, func(ctx context.Context, _ *holdfast.Lease) error {
					close(held)
					<-ctx.Done()
					return nil
				})
			}()
			<-held
		},
		"adopted, and released when the test's context ends": func(t testing.TB, k *holdfasttest.Kit) {
			l, err := k.Client.Acquire(t.Context(), "a", nil)
			if err != nil {
				t.Fatal(err)
			}
			handle, err := l.Leave()
			if err != nil {
				t.Fatal(err)
			}
			adopted, err := k.NewClient(nil).Adopt(t.Context(), handle, nil)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				<-t.Context().Done()
				time.Sleep(100 * time.Millisecond) // the work takes a moment to stop
				_ = adopted.Release(context.Background())
			}()
		},
		"still waiting": func(t testing.TB, k *holdfasttest.Kit) {
			k.HoldElsewhere("a", time.Hour)
			go func() { _ = rightWorkerOn(t, k, "a") }()
			k.AwaitWaiters("a", 1)
		},
		"kept closed": func(t testing.TB, k *holdfasttest.Kit) {
			acquire(t, k.Client, "a", &holdfast.AcquireOptions{MinHold: time.Hour})
		},
		"with an engine of one's own": func(t testing.TB, k *holdfasttest.Kit) {
			engine := k.Engine()
			c, err := holdfast.New(engine, nil)
			if err != nil {
				t.Fatal(err)
			}
			acquire(t, c, "a", nil)
			if err := errors.Join(c.Close(), engine.Close()); err != nil {
				t.Error(err)
			}
			acquire(t, k.Client, "a", nil) // the kit's client still works
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBoth(t, func(t *testing.T) {
				if texts := faketest.Run(t, func(t testing.TB) { test(t, holdfasttest.New(t)) }); texts != nil {
					t.Errorf("%q", texts)
				}
			})
		})
	}
}

// TestGrantedUnheard checks that a lease whose grant had not reached the program when the test
// ended is not reported.
func TestGrantedUnheard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		texts := faketest.Run(t, func(t testing.TB) {
			k := holdfasttest.New(t)
			k.DropReplies(1)
			go func() { _, _ = k.Client.Acquire(context.Background(), "a", nil) }()
			k.AwaitHeld("a")
			k.SlowStore(time.Hour) // so that the grant never reaches the client
			synctest.Wait()
			time.Sleep(time.Second)
		})
		if texts != nil {
			t.Errorf("%q", texts)
		}
	})
}

// TestLeft checks that the kit reports every kind of lease that is left.
func TestLeft(t *testing.T) {
	for name, test := range map[string]func(t testing.TB, k *holdfasttest.Kit){
		"by an engine of one's own": func(t testing.TB, k *holdfasttest.Kit) {
			c, err := holdfast.New(k.Engine(), nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.TryAcquire(t.Context(), "a", nil)
			wantErr(t, err, nil)
			t.(*faketest.T).TB.Cleanup(func() { _ = c.Close() }) // long after the test
		},
		"adopted": func(t testing.TB, k *holdfasttest.Kit) {
			l, err := k.Client.Acquire(t.Context(), "a", nil)
			if err != nil {
				t.Fatal(err)
			}
			handle, err := l.Leave()
			wantErr(t, err, nil)
			_, err = k.NewClient(nil).Adopt(t.Context(), handle, nil)
			wantErr(t, err, nil)
		},
		"handed over": func(t testing.TB, k *holdfasttest.Kit) {
			release := k.HoldElsewhere("a", time.Hour)
			done := make(chan error, 1)
			go func() {
				_, err := k.Client.Acquire(t.Context(), "a", nil)
				done <- err
			}()
			k.AwaitWaiters("a", 1)
			release()
			wantErr(t, <-done, nil)
		},
		"one of several": func(t testing.TB, k *holdfasttest.Kit) {
			_, err := k.Client.AcquireAll(t.Context(), []string{"a", "b"}, nil)
			wantErr(t, err, nil)
			if err := k.Client.Close(); err != nil { // releases them: nothing is left
				t.Error(err)
			}
			_, err = k.NewClient(nil).TryAcquire(t.Context(), "a", nil)
			wantErr(t, err, nil)
		},
		"lost, and not released": func(t testing.TB, k *holdfasttest.Kit) {
			_, err := k.Client.TryAcquire(t.Context(), "a", nil)
			wantErr(t, err, nil)
			k.Lose("a")
		},
		"expired, and not released": func(t testing.TB, k *holdfasttest.Kit) {
			l, err := k.Client.TryAcquire(t.Context(), "a", &holdfast.AcquireOptions{TTL: 20 * time.Millisecond, KeepAlive: holdfast.KeepAliveOff})
			if err != nil {
				t.Fatal(err)
			}
			<-l.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				texts := faketest.Run(t, func(t testing.TB) { test(t, holdfasttest.New(t)) })
				says := `the lease of "a" was not released, acquired at `
				if strings.HasSuffix(name, "and not released") {
					says = `the lease of "a" was lost, and not released even so, acquired at `
				}
				if len(texts) != 1 || !strings.Contains(texts[0], says) || !strings.Contains(texts[0], "left_test.go:") {
					t.Errorf("%q, want that the lease of a is left, and where it was acquired", texts)
				}
			})
		})
	}
}
