package systest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

const onceTTL = 500 * time.Millisecond

// withResource returns clients of a job's store and of its resource. done closes both.
func withResource(ctx context.Context, j traffic.Job) (client *holdfast.Client, resource rueidis.Client, done func(), err error) {
	client, engine, err := j.Client(ctx, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	resource, err = rueidis.NewClient(rueidis.MustParseURL(j.Resource))
	if err != nil {
		_ = engine.Close()
		return nil, nil, nil, err
	}
	return client, resource, func() { resource.Close(); _ = engine.Close() }, nil
}

// doOnce is a job: the crew does the work of a key once. The work has an effect on a resource,
// idempotent by the key. It reports before and after the effect, and continues when the test lets
// it, on a connection without faults.
func doOnce(ctx context.Context, j traffic.Job) (any, error) {
	client, resource, done, err := withResource(ctx, j)
	if err != nil {
		return nil, err
	}
	defer done()
	result, err := client.Once(ctx, j.Name, &holdfast.OnceOptions{TTL: onceTTL}, func(ctx context.Context, l *holdfast.Lease) ([]byte, error) {
		return onceWork(ctx, resource, l, j.Out)
	})
	return string(result.Value), err
}

// onceWork has an effect that is idempotent by the key, and counts how often it began and how often
// it had the effect.
func onceWork(ctx context.Context, resource rueidis.Client, l *holdfast.Lease, out func(any)) ([]byte, error) {
	step := func(words ...string) error {
		err := resource.Do(ctx, resource.B().Arbitrary(words...).Build()).Error()
		if rueidis.IsRedisNil(err) {
			return nil // SET NX: the effect is there already
		}
		return err
	}
	for _, work := range []func() error{
		func() error { return step("INCR", "runs/"+l.Name()) },
		func() error { out("begun"); return step("BLPOP", "go/"+l.Name(), "0") },
		func() error { return step("SET", "effect/"+l.Name(), string(l.ID()), "NX") },
		func() error { return step("INCR", "effects/"+l.Name()) },
		func() error { out("had"); return step("BLPOP", "go/"+l.Name(), "0") },
	} {
		if err := work(); err != nil {
			return nil, err
		}
	}
	return []byte(l.ID()), nil
}

// A crash is a point at which a process dies while it does something once.
type crash struct {
	where string
	die   func(t *testing.T, l *link, c *traffic.Crew, name string)
	runs  int64 // how often the work is begun in all
}

var crashes = []crash{
	{"the acquire is on its way", dieAt(acquire, true), 1},
	{"the acquire is done, not answered", dieAt(acquire, false), 1},
	{"before the effect", dieWhen("begun", 0), 2},
	{"after the effect", dieWhen("had", 1), 2},
	{"the completion is on its way", dieAt(complete, true), 2},
	{"the completion is done, not answered", dieAt(complete, false), 1},
}

// dieWhen returns a function that lets the work take steps, and kills the crew when it reports
// says.
func dieWhen(says string, steps int) func(t *testing.T, l *link, c *traffic.Crew, name string) {
	return func(t *testing.T, l *link, c *traffic.Crew, name string) {
		l.store.goOn(t, name, steps)
		c.Begin()
		for said := ""; said != says; c.Next(&said) {
		}
		c.Kill()
	}
}

// dieAt returns a function that kills the crew at a request o. With before, the request is still
// under way and arrives after the next process has finished; otherwise the store has already
// executed it.
func dieAt(o op, before bool) func(t *testing.T, l *link, c *traffic.Crew, name string) {
	return func(t *testing.T, l *link, c *traffic.Crew, name string) {
		l.store.goOn(t, name, 2)
		wire, reached, answered := make(chan struct{}), make(chan struct{}, 1), make(chan struct{}, 1)
		l.on(o, func(faultproxy.Request) faultproxy.Action {
			action := faultproxy.Action{Reply: faultproxy.Swallow, Answered: func() { answered <- struct{}{} }}
			if before {
				reached <- struct{}{}
				action.Hold = wire
			}
			return action
		})
		c.Begin()
		if !before {
			<-answered
			c.Kill()
			return
		}
		<-reached
		c.Kill()
		t.Cleanup(func() {
			close(wire)
			<-answered
		})
	}
}

// goOn lets the work of a key take steps.
func (s *store) goOn(t *testing.T, name string, steps int) {
	t.Helper()
	for range steps {
		s.do(t, "RPUSH", "go/"+name, "on")
	}
}

// TestOnceCrash lets a process die at each step of doing something once. The next process finds the
// work done or does it. The record is the record of one run, and late requests do not change it. If
// a process died between the effect and the record, the work begins again and finds the effect by
// the key.
func TestOnceCrash(t *testing.T) {
	s := newStore(t)
	client := newClient(t, s.engine, nil)
	once := 0
	for i, c := range crashes {
		t.Run(c.where, func(t *testing.T) {
			name := fmt.Sprintf("crash/%d", i)
			t.Run("crash", func(t *testing.T) {
				l := s.link(t)
				crew := traffic.Start(t, traffic.Job{Job: "do once", Store: "redis://" + l.Addr(), Resource: s.server.URL, Name: name})
				c.die(t, l, crew, name)
				s.do(t, "DEL", "go/"+name)
				s.goOn(t, name, 2)
				result, err := client.Once(t.Context(), name, &holdfast.OnceOptions{TTL: onceTTL, Await: holdfast.Forever},
					func(ctx context.Context, l *holdfast.Lease) ([]byte, error) {
						return onceWork(ctx, s.plain, l, func(any) {})
					})
				if err != nil {
					t.Fatal(err)
				}
				if replayed := c.where == "the completion is done, not answered"; result.Replayed != replayed {
					t.Errorf("replayed %t, want %t", result.Replayed, replayed)
				}
				s.do(t, "SET", "result/"+name, string(result.Value))
			})
			// By now the network of the dead process has delivered the request that was under way.
			if s.once(t, name, c.runs) {
				once++
			}
		})
	}
	report.Row(t, "do-once with a crash at each step", "effect once", "%d of %d: one effect, one result, even after what came late", once, len(crashes))
}

// once reports whether the work of a key began runs times, had its effect once, and still has the
// result that was returned.
func (s *store) once(t *testing.T, name string, runs int64) bool {
	t.Helper()
	began, err := s.do(t, "GET", "runs/"+name).AsInt64()
	if err != nil || began != runs {
		t.Errorf("the work was begun %d times, %v; want %d", began, err, runs)
	}
	client := newClient(t, s.engine, nil)
	again, err := client.Once(t.Context(), name, &holdfast.OnceOptions{TTL: onceTTL}, func(context.Context, *holdfast.Lease) ([]byte, error) {
		t.Error("the work is done again")
		return nil, nil
	})
	want, wantErr := s.do(t, "GET", "result/"+name).ToString()
	if err != nil || wantErr != nil || string(again.Value) != want {
		t.Errorf("the result is %q, %v; it was %q, %v", again.Value, err, want, wantErr)
	}
	if n, err := s.do(t, "EXISTS", "effect/"+name).AsInt64(); err != nil || n != 1 {
		t.Errorf("%d effects, %v", n, err)
	}
	return !t.Failed()
}
