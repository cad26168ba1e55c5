package member

import (
	"errors"
	"slices"
	"testing"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
)

func TestParseMemberReplies(t *testing.T) {
	whole := []any{int64(1), int64(8), int64(9), int64(8), int64(0), "", "", int64(0), int64(0)}
	if reply, err := parsePropose(whole); err != nil || reply.Vote != driver.VoteAccepted || reply.Token != 8 || reply.Clock != 9 {
		t.Errorf("%+v, %v", reply, err)
	}
	bad := []any{nil, int64(1), "x", []any{}, whole[:8], []any{int64(-4), "x"}, []any{int64(-3), int64(0)}}
	for i := range whole {
		item := append([]any{}, whole...)
		item[i] = nil
		bad = append(bad, item)
	}
	for _, vote := range []int64{-1, 6} {
		bad = append(bad, append([]any{vote}, whole[1:]...))
	}
	for _, reply := range bad {
		if got, err := parsePropose(reply); err == nil || isDefinite(err) {
			t.Errorf("%v: %+v, %v; want an unknown outcome", reply, got, err)
		}
	}
	for _, reply := range []any{nil, []any{}, []any{int64(1)}, []any{int64(-1), ""}, []any{"", int64(1)}, []any{int64(4), "refused"}} {
		if got, err := parseWithdraw(reply); err == nil || isDefinite(err) {
			t.Errorf("%v: %d, %v; want an unknown outcome", reply, got, err)
		}
	}
	for _, reply := range []any{nil, []any{}, []any{nil}, int64(-1), 1.5} {
		if got := parseRenew(reply); got.Err == nil || isDefinite(got.Err) {
			t.Errorf("%v: %+v; want an unknown outcome", reply, got)
		}
	}
}

func isDefinite(err error) bool {
	return slices.ContainsFunc(drivertest.Sentinels(), func(e error) bool { return errors.Is(err, e) })
}
