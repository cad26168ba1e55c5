package limit_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server/internal/limit"
)

// TestLoad: it is the sum over all callers, without leases that have run out.
func TestLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.New(limit.Max{})
		leave, err := l.Waiter(one)
		_, err2 := l.Waiter(other)
		_, err3 := l.Stream(other)
		if err := errors.Join(err, err2, err3, l.Leases(one, time.Second, "a"), l.Leases(other, time.Minute, "b")); err != nil {
			t.Fatal(err)
		}
		if got, want := l.Load(), (limit.Load{Waiters: 2, Streams: 1, Leases: 2}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		leave()
		time.Sleep(time.Second)
		if got, want := l.Load(), (limit.Load{Waiters: 1, Streams: 1, Leases: 1}); got != want {
			t.Errorf("later %+v, want %+v", got, want)
		}
	})
}
