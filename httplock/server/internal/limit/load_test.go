package limit_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server/internal/limit"
)

// TestLoad checks that Load returns the sums over all callers, without expired leases.
func TestLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.New(limit.Max{})
		leave, err := l.Waiter(one)
		_, err2 := l.Waiter(other)
		_, err3 := l.Stream(other)
		if err := errors.Join(err, err2, err3, l.Leases(one, time.Second, "a"), l.Leases(other, time.Minute, "b")); err != nil {
			t.Fatal(err)
		}
		if waiters, streams, leases := l.Load(); waiters != 2 || streams != 1 || leases != 2 {
			t.Errorf("%d waiters, %d streams, %d leases, want 2, 1 and 2", waiters, streams, leases)
		}
		leave()
		time.Sleep(time.Second)
		if waiters, streams, leases := l.Load(); waiters != 1 || streams != 1 || leases != 1 {
			t.Errorf("later %d waiters, %d streams, %d leases, want one of each", waiters, streams, leases)
		}
	})
}
