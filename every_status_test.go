package holdfast_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// The status says who leads, who stands by and who runs, between runs and in them, and
// that nobody does.
func TestEveryStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, engine := &diary{t: t}, newFaulty()
		onlooker := newClient(t, engine, nil)
		if s := d.status(onlooker); !s.Began.IsZero() || s.Led || s.Running {
			t.Errorf("a schedule that never was: %+v", s)
		}
		began := time.Now()
		var stops []func() error
		for _, host := range []string{"web-1", "web-2", "web-3"} {
			c := newClient(t, engine, &holdfast.Options{Holder: holdfast.Holder{Host: host}})
			stops = append(stops, d.every(c, minutely, nil, d.run(10*time.Second, nil)))
		}
		hosts := func(holders []holdfast.Holder) (s string) {
			for _, h := range holders {
				s += h.Host + " "
			}
			return s
		}
		time.Sleep(30 * time.Second)
		s := d.status(onlooker)
		if !s.Led || s.Leader.Host != "web-1" || hosts(s.StandingBy) != "web-2 web-3 " || s.Running || !s.Began.Equal(began) || !s.Next.Equal(began.Add(time.Minute)) {
			t.Errorf("before the first run: %+v", s)
		}
		time.Sleep(35 * time.Second)
		s = d.status(onlooker)
		if !s.Running || s.Runner.Host != "web-1" || !s.Runner.Once || s.RunningFor != 5*time.Second || !s.Led || s.Done != 0 {
			t.Errorf("in a run: %+v", s)
		}
		time.Sleep(30 * time.Second)
		s = d.status(onlooker)
		if s.Running || s.Done != 1 || s.Last.Took != 10*time.Second || !s.Last.Started.Equal(began.Add(time.Minute)) || s.Last.By != "web-1" || s.Last.Attempt != 1 {
			t.Errorf("after a run: %+v", s)
		}
		_ = stops[0]()
		s = d.status(onlooker)
		if s.Leader.Host != "web-2" || hosts(s.StandingBy) != "web-3 " {
			t.Errorf("after the leader's end: %+v", s)
		}
		_, _ = stops[1](), stops[2]()
		if s = d.status(onlooker); s.Led || s.Done != 1 {
			t.Errorf("after the end: %+v", s)
		}
		if _, err := onlooker.EveryStatus(t.Context(), ""); !errors.Is(err, holdfast.ErrInvalid) {
			t.Error(err)
		}
	})
}
