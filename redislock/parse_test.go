package redislock

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// TestSlots compares our arithmetic with the server's.
func TestSlots(t *testing.T) {
	t.Parallel()
	admin := plain(t, cluster(t))
	alphabet := []rune("ab{}{}:/é ")
	names := []string{"a", "{}", "{}{a}", "a}b{c}", "{a", "a}", "{{a}}", "}{", "{a}{b}", "foo{}{bar}", "x{y}z"}
	for range 300 {
		var b strings.Builder
		for range 1 + rand.IntN(12) {
			b.WriteRune(alphabet[rand.IntN(len(alphabet))])
		}
		names = append(names, b.String())
	}
	for _, prefix := range []string{"", "p:", "{tag}:", "a{tag}"} {
		keys, err := newKeyspace(prefix)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			want := number(t, admin, "CLUSTER KEYSLOT", keys.lock(name))
			if got := slot(keys.lock(name)); int64(got) != want {
				t.Errorf("slot of %q: %d, the server says %d", keys.lock(name), got, want)
			}
			for _, key := range []string{keys.fence(name), keys.mark(name), keys.tombstone(name, driver.NewLeaseID())} {
				if got := number(t, admin, "CLUSTER KEYSLOT", key); got != want {
					t.Errorf("%q is in slot %d, its lock in %d", key, got, want)
				}
			}
			if got, ok := keys.listedName(keys.fence(name)); !ok || got != name {
				t.Errorf("%q reads back as %q, %v", name, got, ok)
			}
		}
	}
}

func TestPrefixes(t *testing.T) {
	for prefix, ok := range map[string]bool{
		"": true, "p:": true, "{tag}": true, "a{tag}b": true, "{a}{b": true, "*?[]": true,
		"{": false, "}": false, "{}": false, "a{b": false, "a}b": false, "}{": false, "{}{a}": false, "a\n": false, "\xff": false,
	} {
		_, err := newKeyspace(prefix)
		if ok {
			wantIs(t, prefix, err, nil)
		} else {
			wantIs(t, prefix, err, driver.ErrInvalid)
		}
	}
}

// FuzzKeyspace: the companion of any name is in its slot and reads back.
func FuzzKeyspace(f *testing.F) {
	f.Add("p:", "orders/42")
	f.Add("{t}", "a}b{c")
	f.Add("", "}:fence:")
	f.Fuzz(func(t *testing.T, prefix, name string) {
		keys, err := newKeyspace(prefix)
		if err != nil || driver.CheckName(name) != nil || keys.check(name) != nil {
			return
		}
		fence := keys.fence(name)
		if slot(fence) != slot(keys.lock(name)) {
			t.Errorf("%q is not in the slot of %q", fence, keys.lock(name))
		}
		if got, ok := keys.listedName(fence); !ok || got != name {
			t.Errorf("%q reads back as %q, %v", name, got, ok)
		}
		keys.listedName(name) // must not panic
	})
}

// FuzzValue: any string is a value of ours that is written again as it is, up
// to the spelling of its parts, or foreign.
func FuzzValue(f *testing.F) {
	id := string(driver.NewLeaseID())
	for _, seed := range []string{
		id + ` 1763690000123457 30000 {"host":"web-3","pid":812}`, "-" + id + " 1 2 {}", id + " 1 2 ",
		"", "-", "mine", id, id + " 9007199254740991 1 {}", id + " 1 9223372036854775807 {}", id + " 1 -1 {}",
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
		again, ok := parseValue(fmt.Sprintf("%s%s %d %s %s", mark, v.id, v.token, formatMS(v.ttl), formatHolder(v.holder)))
		if !ok || fmt.Sprint(again) != fmt.Sprint(v) {
			t.Errorf("%+v reads back as %+v, %v", v, again, ok)
		}
	})
}

// FuzzURL: no URL panics, and no error tells what it does not understand.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{
		"redis://localhost", "rediss://u:" + secret + "@h:1/2?prefix=x", "redis://u:" + secret + "/@h",
		"redis://[::1]:6379/0", "redis://:" + secret + "@", "redis://h?" + secret, "x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, rawURL string) {
		opts, _, err := parseURL(rawURL)
		if err == nil && (len(opts.InitAddress) != 1 || !opts.DisableRetry || opts.SelectDB < 0) {
			t.Errorf("%q gives %+v", rawURL, opts)
		}
		if err != nil {
			wantIs(t, rawURL, err, driver.ErrInvalid)
		}
	})
}

// TestMalformedReplies: what no script gives is an error, of unknown outcome,
// and never a grant.
func TestMalformedReplies(t *testing.T) {
	replies := []any{
		nil, "", "x", int64(0), int64(1), int64(-1), true, 1.5, []any{}, []any{nil}, []any{"1"}, []any{int64(1)},
		[]any{int64(7)}, []any{int64(1), "5"}, []any{int64(1), int64(0)}, []any{int64(1), int64(-5)},
		[]any{int64(1), int64(driver.MaxToken) + 1}, []any{int64(1), int64(5), int64(5)},
		[]any{int64(0)}, []any{int64(0), "1", "{}"}, []any{int64(0), int64(1), nil},
		[]any{int64(0), int64(5), int64(5)}, []any{int64(0), int64(5), ""}, []any{int64(0), int64(5), "", int64(-1)},
		[]any{int64(-4)}, []any{int64(-4), "3"}, []any{int64(-5)}, []any{int64(5), ""}, []any{int64(2), nil}, []any{int64(2)}, []any{[]any{}, []any{}},
		map[string]any{"a": int64(1)}, []any{"0", []any{int64(1)}}, []any{"x", []any{}},
	}
	for _, reply := range replies {
		got, err := parseAcquire(reply, 0)
		if fmt.Sprint(reply) != "[-1]" && (err == nil || got.Outcome == driver.Granted) {
			t.Errorf("acquire: %v is %+v", reply, got)
		}
		wantIs(t, fmt.Sprint("acquire ", reply), err, nil)
		var all released
		if all.parse(reply) == nil {
			t.Errorf("release: %v is a success", reply)
		}
		if err := parseExtend(reply); err == nil && reply != int64(1) {
			t.Errorf("extend: %v is a success", reply)
		}
		var found inspection
		if found.parse("n", reply); found.err == nil {
			t.Errorf("inspect: %v is %+v", reply, found)
		}
		if _, _, err := parseScan(reply); err == nil {
			t.Errorf("scan: %v is a page", reply)
		}
	}
}

// FuzzInspectReply: no value and no number make the description panic.
func FuzzInspectReply(f *testing.F) {
	f.Add(int64(-1), "mine", "17")
	f.Add(int64(1<<62), string(driver.NewLeaseID())+" 1 2 {}", "x")
	f.Fuzz(func(t *testing.T, left int64, value, last string) {
		var found inspection
		found.parse("n", []any{int64(0), left, value, last, []any{}, []any{}, int64(0), int64(0), ""})
		if found.describe(); found.err != nil {
			wantIs(t, "inspect", found.err, driver.ErrKindMismatch)
			return
		}
		for _, h := range found.lock.Holders {
			if h.ExpiresIn < time.Millisecond && h.ExpiresIn != driver.Never {
				t.Errorf("%d ms left of %q: %s", left, value, h.ExpiresIn)
			}
		}
	})
}
