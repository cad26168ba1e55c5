package rediscore

import (
	"context"
	"fmt"
	"testing"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
)

// A parrot gives one reply to every script.
type parrot struct {
	Conn
	reply any
}

func (p parrot) EvalSHA(context.Context, string, []string, []string) (any, error) {
	return p.reply, nil
}
func (p parrot) Mode() Mode { return OneServer }
func (p parrot) Close()     {}

// TestMalformedBatches: where a reply is not about as many as were asked for,
// the outcome is unknown for all of them.
func TestMalformedBatches(t *testing.T) {
	t.Parallel()
	ids := []driver.LeaseID{driver.NewLeaseID(), driver.NewLeaseID()}
	for _, reply := range []any{nil, "", int64(1), []any{}, []any{int64(1)}, []any{int64(1), int64(1), int64(1)}} {
		e := New(parrot{reply: reply}, nil)
		errs := e.Extend(t.Context(), []driver.ExtendRequest{{Name: "a", LeaseID: ids[0]}, {Name: "b", LeaseID: ids[1]}})
		for _, r := range e.Refresh(t.Context(), []driver.RefreshRequest{{Name: "a", LeaseID: ids[0]}, {Name: "b", LeaseID: ids[1]}}) {
			errs = append(errs, r.Err)
		}
		_, err := e.Inspect(t.Context(), "a")
		for i, err := range append(errs, err) {
			if err == nil || driver.Definite(err) {
				t.Errorf("reply %v: answer %d is %v", reply, i, err)
			}
			drivertest.WantIs(t, fmt.Sprint(reply), err, nil)
		}
		_ = e.Close()
	}
}
