package rediscore

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A parrot gives the same reply to every script.
type parrot struct {
	Conn
	reply any
}

func (p parrot) EvalSHA(context.Context, string, []string, []string) (any, error) {
	return p.reply, nil
}
func (p parrot) EvalInts(context.Context, string, []string, []string, []int64) ([]int64, error) {
	return nil, errors.New("no integers")
}
func (p parrot) Mode() Mode { return OneServer }
func (p parrot) Close()     {}

// TestMalformedBatches checks that the outcome is unknown for all requests if a reply has the wrong
// number of results.
func TestMalformedBatches(t *testing.T) {
	t.Parallel()
	ids := []lockinfo.LeaseID{lockinfo.NewLeaseID(), lockinfo.NewLeaseID()}
	for _, reply := range []any{nil, "", int64(1), []any{}, []any{int64(1)}, []any{int64(1), int64(1), int64(1)}} {
		e := mustNew(t, parrot{reply: reply})
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

// A teller gives one reply after the other, and records the number of keys in each request.
type teller struct {
	parrot
	replies []any
	keys    []int
}

func (c *teller) EvalSHA(_ context.Context, _ string, keys, _ []string) (any, error) {
	reply := c.replies[0]
	c.replies, c.keys = c.replies[1:], append(c.keys, len(keys))
	return reply, nil
}

// TestBatchGoesOn checks that requests for which a call had no room are sent again, alone.
func TestBatchGoesOn(t *testing.T) {
	t.Parallel()
	conn := &teller{replies: []any{[]any{int64(0), int64(0)}, []any{more, int64(0)}, []any{more}, []any{"OOM full"}}}
	e := mustNew(t, conn)
	defer e.Close()
	id := lockinfo.NewLeaseID()
	errs := e.Extend(t.Context(), []driver.ExtendRequest{{Name: "a", LeaseID: id}, {Name: "b", LeaseID: id}})
	drivertest.WantIs(t, "the first", errs[0], driver.ErrUnavailable)
	drivertest.WantIs(t, "the second", errs[1], driver.ErrLost)
	plain, each := len(e.scripts.PlainRenew.EachKeys), len(e.scripts.Extend.EachKeys)
	if fmt.Sprint(conn.keys) != fmt.Sprint([]int{2 * plain, 2 * each, each, each}) {
		t.Errorf("calls with %d keys, want %d of each, after one with %d", conn.keys, each, plain)
	}
}

// TestNamesShareKeys checks that requests about one name share its keys.
func TestNamesShareKeys(t *testing.T) {
	t.Parallel()
	id := lockinfo.NewLeaseID()
	conn := &teller{replies: []any{[]any{"OOM", "OOM", "OOM"}}}
	e := mustNew(t, conn)
	defer e.Close()
	e.Refresh(t.Context(), []driver.RefreshRequest{{Name: "a", LeaseID: id}, {Name: "b", LeaseID: id}, {Name: "a", LeaseID: id}})
	if want := 2 * len(e.scripts.Refresh.EachKeys); conn.keys[0] != want {
		t.Errorf("a refresh of three places of two names has %d keys, want %d", conn.keys[0], want)
	}
}

// mustNew returns an engine on a connection.
func mustNew(t testing.TB, conn Conn) *Engine {
	t.Helper()
	e, err := New(conn, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
