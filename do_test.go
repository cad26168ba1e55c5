package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func TestCallReturnsTheValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		c := newClient(t, engine, nil)
		v, err := holdfast.Call(t.Context(), c, "a", nil, func(ctx context.Context, l *holdfast.Lease) (string, error) {
			got, ok := holdfast.LeaseFromContext(ctx)
			expect(t, ok && got == l, "the context does not carry the lease")
			expect(t, holders(t, engine, "a") == 1, "the lock is not held while the work runs")
			return "value", nil
		})
		expect(t, v == "value" && err == nil && holders(t, engine, "a") == 0, "Call = %q, %v; %d holders left", v, err, holders(t, engine, "a"))
	})
}

func TestDoReleasesInEveryCase(t *testing.T) {
	errWork := errors.New("work failed")
	cases := map[string]func(context.Context, *holdfast.Lease) error{
		"error": func(context.Context, *holdfast.Lease) error { return errWork },
		"panic": func(context.Context, *holdfast.Lease) error { panic("work panicked") },
	}
	for name, work := range cases {
		runInBubble(t, name, func(t *testing.T) {
			engine := mem.New(nil)
			c := newClient(t, engine, nil)
			func() {
				defer func() { recover() }()
				err := c.Do(t.Context(), "a", nil, work)
				expect(t, err == errWork, "Do = %v, want the work's error as it is", err)
			}()
			expect(t, holders(t, engine, "a") == 0, "the lock is still held")
		})
	}
}

func TestDoEndsTheWorkWithTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		c := newClient(t, engine, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := c.Do(ctx, "a", nil, func(ctx context.Context, l *holdfast.Lease) error {
			<-ctx.Done()
			expect(t, l.Valid(), "the lease ended with the caller's context, before the work")
			return ctx.Err()
		})
		wantErr(t, err, context.DeadlineExceeded)
		expect(t, !errors.Is(err, holdfast.ErrLost) && holders(t, engine, "a") == 0, "error %v, %d holders left", err, holders(t, engine, "a"))
	})
}

func TestDoTellsLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		c := newClient(t, engine, nil)
		errWork := errors.New("work failed")
		for _, result := range []error{nil, errWork} {
			err := c.Do(t.Context(), "a", nil, func(ctx context.Context, l *holdfast.Lease) error {
				engine.Release(ctx, driver.ReleaseRequest{Name: "a", LeaseID: l.ID()})
				<-ctx.Done()
				wantErr(t, context.Cause(ctx), holdfast.ErrLost)
				return result
			})
			wantErr(t, err, holdfast.ErrLost)
			if result != nil {
				wantErr(t, err, errWork)
			}
		}
		// If the work ends before the next renewal, the release detects the loss.
		err := c.Do(t.Context(), "a", nil, func(ctx context.Context, l *holdfast.Lease) error {
			return engine.Release(ctx, driver.ReleaseRequest{Name: "a", LeaseID: l.ID()})
		})
		wantErr(t, err, holdfast.ErrLost)
	})
}

// TestDoExcludes checks that Do runs the work of one caller at a time. INVARIANT I1.
func TestDoExcludes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		var wg sync.WaitGroup
		inside, total := 0, 0
		var last uint64
		for range 4 {
			c := newClient(t, engine, nil)
			for range 8 {
				wg.Go(func() {
					for range 10 {
						err := c.Do(t.Context(), "a", nil, func(_ context.Context, l *holdfast.Lease) error {
							inside++ // the race detector checks this, too
							expect(t, inside == 1 && l.Token() > last, "%d inside, token %d after %d", inside, l.Token(), last)
							last = l.Token()
							time.Sleep(time.Millisecond)
							inside--
							total++
							return nil
						})
						expect(t, err == nil, "%v", err)
					}
				})
			}
		}
		wg.Wait()
		expect(t, total == 4*8*10, "the work ran %d times, want 320", total)
	})
}

// TestReleaseWithTheContextOfTheWork checks that the work may release its lease with its own
// context, which the release ends.
func TestReleaseWithTheContextOfTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		engine.set(func(ctx context.Context, op string) error {
			if op != "release" {
				return nil
			}
			synctest.Wait()
			return ctx.Err() // like a store that checks the context
		}, nil)
		c := newClient(t, engine, nil)
		err := c.Do(t.Context(), "outer", nil, func(ctx context.Context, outer *holdfast.Lease) error {
			return c.Do(ctx, "inner", nil, func(ctx context.Context, inner *holdfast.Lease) error {
				return errors.Join(outer.Release(ctx), inner.Release(ctx))
			})
		})
		expect(t, err == nil, "a release with the context of the work: %v", err)
	})
}

// TestTryDoSkipsAtOnce checks that TryDo does not run the work if the lock is held, and returns the
// holder at once. Otherwise it runs the work like Do.
func TestTryDoSkipsAtOnce(t *testing.T) {
	for _, as := range fullAndPlain {
		synctest.Test(t, func(t *testing.T) {
			engine := newFaulty()
			deploy := holdfast.Holder{Host: "web-3", User: "deploy", PID: 812, Program: "deploy.sh"}
			other, c := newClient(t, as(engine), &holdfast.Options{Holder: deploy}), newClient(t, as(engine), nil)
			busy := mustAcquire(t, other, "orders/42", nil)
			time.Sleep(12 * time.Minute)

			start := time.Now()
			// A MaxWait is ignored, as by TryAcquire.
			err := c.TryDo(t.Context(), "orders/42", &holdfast.AcquireOptions{MaxWait: time.Hour}, func(context.Context, *holdfast.Lease) error {
				t.Error("the work ran although somebody else has the lock")
				return nil
			})
			var held *holdfast.HeldError
			expect(t, errors.As(err, &held) && held.Holder.Host == "web-3" && held.Since >= 12*time.Minute && time.Since(start) == 0,
				"after %s: %v, want at once that web-3 has it for 12m", time.Since(start), err)
			const says = `holdfast: acquire "orders/42": held by deploy@web-3 (pid 812, deploy.sh) for 12m`
			expect(t, err.Error() == says, "%q\nwant %q", err, says)
			n, err := holdfast.TryCall(t.Context(), c, "orders/42", nil, func(context.Context, *holdfast.Lease) (int, error) { return 7, nil })
			if wantErr(t, err, holdfast.ErrHeld); n != 0 {
				t.Errorf("%d came back from work that did not run", n)
			}

			busy.Release(t.Context())
			n, err = holdfast.TryCall(t.Context(), c, "orders/42", nil, func(ctx context.Context, l *holdfast.Lease) (int, error) {
				got, ok := holdfast.LeaseFromContext(ctx)
				expect(t, ok && got == l && l.Valid() && holders(t, engine, "orders/42") == 1, "the work does not run under the lease")
				return 7, nil
			})
			expect(t, n == 7 && err == nil, "TryCall = %d, %v; want 7", n, err)
			errWork := errors.New("work failed")
			if err := c.TryDo(t.Context(), "orders/42", nil, func(context.Context, *holdfast.Lease) error { return errWork }); err != errWork {
				t.Errorf("%v, want the work's error as it is", err)
			}
			nothingLeft(t, engine, "orders/42")
		})
	}
}

// unpanicked returns the error of call, which must not panic.
func unpanicked(t testing.TB, call func() error) (err error) {
	t.Helper()
	defer func() {
		p := recover()
		expect(t, p == nil, "it panics: %v", p)
	}()
	return call()
}

// TestNoWork checks that nil work is refused before a request is sent.
func TestNoWork(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		for _, call := range []func() error{
			func() error { return c.Do(t.Context(), "a", nil, nil) },
			func() error { return c.TryDo(t.Context(), "a", nil, nil) },
			func() error { _, err := holdfast.Call[int](t.Context(), c, "a", nil, nil); return err },
			func() error { _, err := holdfast.TryCall[int](t.Context(), c, "a", nil, nil); return err },
		} {
			if err := unpanicked(t, call); err == nil || !errors.Is(err, holdfast.ErrInvalid) || err.Error() != `holdfast: do "a": invalid work: it is nil` {
				t.Errorf("error %v", err)
			}
		}
		n := engine.count("acquire")
		expect(t, n == 0, "%d requests were sent", n)
	})
}

// TestTryDoTellsAnOutage checks that TryDo does not return ErrHeld if the store does not answer.
func TestTryDoTellsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := newFaulty()
		dead.set(fail(driver.ErrUnavailable, "acquire"), nil)
		for _, c := range []*holdfast.Client{newClient(t, dead, nil), newClient(t, plain{dead}, nil)} {
			err := c.TryDo(t.Context(), "a", nil, func(context.Context, *holdfast.Lease) error { return nil })
			if wantErr(t, err, holdfast.ErrUnavailable); errors.Is(err, holdfast.ErrHeld) {
				t.Errorf("%v is ErrHeld as well", err)
			}
		}
	})
}

// A loss is a way to lose the work's lease. lose makes the store lose the lease, unless the options
// lead to the loss.
type loss struct {
	opts holdfast.AcquireOptions
	lose func(t *testing.T, store *mem.Engine, l *holdfast.Lease)
	says string
	is   []error
}

var losses = map[string]loss{
	"MaxHold":    {opts: holdfast.AcquireOptions{MaxHold: time.Minute}, says: "held for MaxHold", is: []error{holdfast.ErrMaxHold}},
	"StallAfter": {opts: holdfast.AcquireOptions{StallAfter: time.Minute}, says: "no heartbeat", is: []error{holdfast.ErrStalled}},
	"broken": {
		lose: func(t *testing.T, store *mem.Engine, l *holdfast.Lease) {
			if _, err := newClient(t, store, nil).Break(t.Context(), l.Name(), &holdfast.BreakOptions{Author: "ada", Reason: "its node is gone"}); err != nil {
				t.Error(err)
			}
		},
		says: "broken by ada: its node is gone", is: []error{holdfast.ErrBroken},
	},
	"taken away": {
		lose: func(t *testing.T, store *mem.Engine, l *holdfast.Lease) { takeAway(t, store, l.Name()) },
		says: "the store no longer has it",
	},
}

// doForms are the calls that run work under a lease.
var doForms = map[string]func(ctx context.Context, c *holdfast.Client, o holdfast.AcquireOptions, work func(context.Context, *holdfast.Lease) error) error{
	"do": func(ctx context.Context, c *holdfast.Client, o holdfast.AcquireOptions, work func(context.Context, *holdfast.Lease) error) error {
		return c.Do(ctx, "a", &o, work)
	},
	"do, trying": func(ctx context.Context, c *holdfast.Client, o holdfast.AcquireOptions, work func(context.Context, *holdfast.Lease) error) error {
		return c.TryDo(ctx, "a", &o, work)
	},
	"once": func(ctx context.Context, c *holdfast.Client, o holdfast.AcquireOptions, work func(context.Context, *holdfast.Lease) error) error {
		_, err := c.Once(ctx, "a", &holdfast.OnceOptions{MaxHold: o.MaxHold, StallAfter: o.StallAfter}, func(ctx context.Context, l *holdfast.Lease) ([]byte, error) {
			return nil, work(ctx, l)
		})
		return err
	},
}

// TestLossSaysWhy checks that the error of work whose lease was lost contains the loss, its reason,
// and the work's own error, in one line, however the work reacts.
func TestLossSaysWhy(t *testing.T) {
	errWork := errors.New("the disk is full")
	works := map[string]struct {
		work func(ctx context.Context) error
		ends string // of the text
		is   error
	}{
		"succeeds":          {work: func(context.Context) error { return nil }},
		"fails":             {work: func(context.Context) error { return errWork }, ends: "; the work returned: the disk is full", is: errWork},
		"ends":              {work: func(ctx context.Context) error { return ctx.Err() }, ends: "; the work returned: context canceled", is: context.Canceled},
		"returns the cause": {work: context.Cause},
		"wraps the cause":   {work: func(ctx context.Context) error { return fmt.Errorf("copying: %w", context.Cause(ctx)) }},
		"meets another loss": {
			work: func(context.Context) error { return fmt.Errorf("copying: %w", holdfast.ErrLost) },
			ends: "; the work returned: copying: lease is lost",
		},
	}
	for reason, lost := range losses {
		for form, do := range doForms {
			for how, tt := range works {
				if form == "once" && how == "succeeds" {
					continue // the store decides whether it keeps the result: see once_complete_test.go
				}
				runInBubble(t, reason+", "+form+", "+how, func(t *testing.T) {
					store := mem.New(nil)
					c := newClient(t, store, nil)
					err := do(t.Context(), c, lost.opts, func(ctx context.Context, l *holdfast.Lease) error {
						if lost.lose != nil {
							lost.lose(t, store, l)
						}
						<-ctx.Done()
						return tt.work(ctx)
					})
					wantLoss(t, err, lost, tt.is)
					verb, _, _ := strings.Cut(form, ",")
					says := `holdfast: ` + verb + ` "a": while the work ran: lease is lost: ` + lost.says + tt.ends
					if how == "wraps the cause" {
						says = "copying: lease is lost: " + lost.says
					}
					if err != nil && err.Error() != says {
						t.Errorf("%q\nwant %q", err, says)
					}
				})
			}
		}
	}
}

// wantLoss fails t unless err is the loss, and also too if that is not nil.
func wantLoss(t *testing.T, err error, lost loss, also error) {
	t.Helper()
	for _, is := range append([]error{holdfast.ErrLost}, lost.is...) {
		wantErr(t, err, is)
	}
	if also != nil {
		wantErr(t, err, also)
	}
	var broken *holdfast.BrokenError
	if errors.Is(err, holdfast.ErrBroken) && (!errors.As(err, &broken) || broken.Author != "ada" || broken.Reason != "its node is gone") {
		t.Errorf("%v: author and reason are %+v", err, broken)
	}
}

// TestLossFoundAtTheEndSaysWhy checks that the error contains the loss and its reason even if only
// the release, or the store's refusal of the result, detects the loss.
func TestLossFoundAtTheEndSaysWhy(t *testing.T) {
	errWork := errors.New("the disk is full")
	for _, reason := range []string{"broken", "taken away"} {
		for form, do := range doForms {
			for _, result := range []error{nil, errWork} {
				runInBubble(t, fmt.Sprint(reason, ", ", form, ", ", result), func(t *testing.T) {
					store, lost := mem.New(nil), losses[reason]
					var told []error
					c := newClient(t, &silent{newFaultyOn(store)}, &holdfast.Options{Observer: func(e holdfast.Event) {
						if e.Kind == holdfast.Lost {
							told = append(told, e.Err)
						}
					}})
					err := do(t.Context(), c, lost.opts, func(_ context.Context, l *holdfast.Lease) error {
						lost.lose(t, store, l)
						return result
					})
					wantLoss(t, err, lost, result)
					if err != nil && (strings.Contains(err.Error(), "\n") || strings.Count(err.Error(), lost.says) != 1) {
						t.Errorf("%q, want one line that says once: %s", err, lost.says)
					}
					synctest.Wait()
					expect(t, len(told) == 1 && strings.Contains(told[0].Error(), lost.says), "the Observer heard %v, want: %s", told, lost.says)
				})
			}
		}
	}
}

// TestLossWithoutAnAnswer checks that a store that does not return the reason of a loss delays the
// report of the loss only a little.
func TestLossWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := mem.New(nil)
		f := newFaultyOn(store)
		c := newClient(t, unwilling{&silent{f}}, nil)
		start := time.Now()
		err := c.Do(t.Context(), "a", nil, func(_ context.Context, l *holdfast.Lease) error {
			losses["broken"].lose(t, store, l)
			return nil
		})
		if wantErr(t, err, holdfast.ErrLost); errors.Is(err, holdfast.ErrBroken) || time.Since(start) > 250*time.Millisecond {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
}

// An unwilling engine does not answer Breaks.
type unwilling struct{ *silent }

func (unwilling) Breaks(ctx context.Context, _ string) ([]lockinfo.Broken, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestCloseUnderWork checks that Do, Once and Lead report that Close has released the lock under
// the work, although the work returns nil. Work that releases the lock itself succeeds.
func TestCloseUnderWork(t *testing.T) {
	type work = func(context.Context, *holdfast.Lease) error
	for name, do := range map[string]func(context.Context, *holdfast.Client, work) error{
		"do": func(ctx context.Context, c *holdfast.Client, fn work) error { return c.Do(ctx, "a", nil, fn) },
		"once": func(ctx context.Context, c *holdfast.Client, fn work) error {
			_, err := c.Once(ctx, "a", nil, func(ctx context.Context, l *holdfast.Lease) ([]byte, error) { return nil, fn(ctx, l) })
			return err
		},
		"lead": func(ctx context.Context, c *holdfast.Client, fn work) error { return c.Lead(ctx, "a", nil, fn) },
	} {
		runWithClient(t, name, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			err := do(t.Context(), c, func(context.Context, *holdfast.Lease) error { return c.Close() })
			wantErr(t, err, holdfast.ErrClosed)
			expect(t, name == "lead" || errors.Is(err, holdfast.ErrLost), "the lock was released under the work: %v", err)
		})
	}
	runWithClient(t, "released by the work", nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		must(t, c.Do(t.Context(), "a", nil, func(ctx context.Context, l *holdfast.Lease) error {
			return errors.Join(l.Release(ctx), c.Close())
		}))
	})
}
