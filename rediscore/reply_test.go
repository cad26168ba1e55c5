package rediscore

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/holders"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
)

// FuzzValue checks that any string is either foreign, or a value of ours that is written again as
// it was, up to the spelling of its parts.
func FuzzValue(f *testing.F) {
	id := string(lockinfo.NewLeaseID())
	for _, seed := range []string{
		"1 " + id + ` 30000 1763690000123457 1763690000123450 {"host":"web-3","pid":812}`, "1 -" + id + " 2 1 0 {}", "1 " + id + " 2 1 7 ",
		"", "-", "1 ", "mine", id, "1 " + id, "1 " + id + " 1 9007199254740991 1 {}", "1 " + id + " 9223372036854775807 1 1 {}",
		"1 " + id + " -1 1 1 {}", "1 " + id + " 1 1 -1 {}", "1 " + id + " 1 1 9223372036854775808 {}", id + " 1 2 {}", "2 " + id + " 2 1 5 {}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, ok := parseValue(s)
		if !ok {
			if v.id != "" || v.token != 0 {
				t.Errorf("%q is foreign and says %+v", s, v)
			}
			return
		}
		if !v.id.Valid() || v.token > driver.MaxToken || v.ttl < 0 || !strings.Contains(s, string(v.id)) {
			t.Errorf("%q says %+v", s, v)
		}
		mark := ""
		if v.released {
			mark = "-"
		}
		again, ok := parseValue(fmt.Sprintf("1 %s%s %s %d %d %s", mark, v.id, form.MS(v.ttl), v.token, v.granted, holders.Text(v.holder)))
		if !ok || fmt.Sprint(again) != fmt.Sprint(v) {
			t.Errorf("%+v reads back as %+v, %v", v, again, ok)
		}
	})
}

// TestMalformedReplies checks that a reply which no script returns is an error with an unknown
// outcome, and never a grant.
func TestMalformedReplies(t *testing.T) {
	replies := []any{
		nil, "", "x", int64(0), int64(1), int64(-1), true, 1.5, []any{}, []any{nil}, []any{"1"}, []any{int64(1)},
		[]any{int64(7)}, []any{int64(1), "5"}, []any{int64(1), int64(0)}, []any{int64(1), int64(-5)},
		[]any{int64(1), int64(driver.MaxToken) + 1}, []any{int64(1), int64(5), int64(5)},
		[]any{int64(0)}, []any{int64(0), "1", "{}"}, []any{int64(0), int64(1), nil},
		[]any{int64(0), int64(5), int64(5)}, []any{int64(0), int64(5), ""}, []any{int64(0), int64(5), "", int64(1)},
		[]any{int64(0), int64(5), "", int64(-1), int64(0), int64(0), int64(0)}, []any{int64(0), int64(5), "", int64(0), int64(-1), int64(0), int64(0)},
		[]any{int64(0), int64(5), "", int64(0), int64(0), int64(0), int64(2)},
		[]any{int64(-4)}, []any{int64(-4), "3"}, []any{int64(-5)}, []any{int64(5), ""}, []any{int64(2), nil}, []any{int64(2)}, []any{[]any{}, []any{}},
		map[string]any{"a": int64(1)}, []any{"0", []any{int64(1)}}, []any{"x", []any{}},
	}
	for _, reply := range replies {
		got, err := parseAcquire(reply, 0)
		if fmt.Sprint(reply) != "[-1]" && (err == nil || got.Outcome == driver.Granted) {
			t.Errorf("acquire: %v is %+v", reply, got)
		}
		drivertest.WantIs(t, fmt.Sprint("acquire ", reply), err, nil)
		var all released
		if all.parse(reply) == nil {
			t.Errorf("release: %v is a success", reply)
		}
		if err := parseExtend(reply); err == nil && reply != int64(1) {
			t.Errorf("extend: %v is a success", reply)
		}
		if found := parseInspection("n", reply); found.Err == nil && reply != int64(0) { // 0 is a name with nothing but a token
			t.Errorf("inspect: %v is %+v", reply, found)
		}
		if _, _, err := parseScan(reply); err == nil {
			t.Errorf("scan: %v is a page", reply)
		}
	}
}

// FuzzInspectReply checks that no value and no number cause a panic.
func FuzzInspectReply(f *testing.F) {
	f.Add(int64(-1), "mine", "17")
	f.Add(int64(1<<62), "1 "+string(lockinfo.NewLeaseID())+" 2 1 9223372036854775807 {}", "x")
	f.Fuzz(func(t *testing.T, left int64, value, last string) {
		found := parseInspection("n", []any{int64(0), left, value, last, []any{}, []any{}, int64(0), int64(0), "", int64(0)})
		if found.describe(); found.Err != nil {
			drivertest.WantIs(t, "inspect", found.Err, driver.ErrKindMismatch)
			return
		}
		for _, h := range found.Lock.Holders {
			if h.Since < 0 {
				t.Errorf("%q was granted %s ago", value, h.Since)
			}
			if h.ExpiresIn < time.Millisecond && h.ExpiresIn != lockinfo.Never {
				t.Errorf("%d ms left of %q: %s", left, value, h.ExpiresIn)
			}
		}
	})
}

// TestVaultReplies checks that a malformed reply leaves the outcome unknown, and is not part of the
// error: it may contain a payload.
func TestVaultReplies(t *testing.T) {
	for _, reply := range []any{
		nil, int64(1), "payload", []any{}, []any{int64(1)}, []any{int64(5)}, []any{int64(-2)}, []any{"payload"},
		[]any{int64(1), "payload"}, []any{int64(2), int64(2)}, []any{int64(3), "payload"},
		[]any{int64(2), int64(1), "payload"}, []any{int64(1), "payload", int64(1)}, []any{int64(1), int64(1), int64(1)},
	} {
		for op, parse := range map[string]func(any) (driver.VaultReply, error){"redeem": parseRedeem, "peek": parsePeek} {
			got, err := parse(reply)
			if err == nil || got.State != driver.Unknown || got.Payload != nil || strings.Contains(err.Error(), "payload") {
				t.Errorf("%s: %v became %+v, %v", op, reply, got, err)
			}
			for _, certain := range []error{driver.ErrUnavailable, driver.ErrKindMismatch, driver.ErrInvalid} {
				if errors.Is(err, certain) {
					t.Errorf("%s: %v became %v, which is certain", op, reply, err)
				}
			}
		}
	}
}
