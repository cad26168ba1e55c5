package lockinfo_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// TestPermitsKeepsItsNumbers checks that no two modes are equal, and that a mode keeps the numbers
// of Permits within its range.
func TestPermitsKeepsItsNumbers(t *testing.T) {
	numbers := []int{math.MinInt32, -1 << 30, -1, 0, 1, 2, 5, lockinfo.MaxLimit, lockinfo.MaxLimit + 1, 1<<30 - 1, 1 << 30, math.MaxInt32}
	kept := func(n int) int { return min(max(n, -1<<30), 1<<30-1) }
	seen := map[lockinfo.Mode][2]int{lockinfo.Exclusive: {}, lockinfo.Shared: {}}
	for _, n := range numbers {
		for _, limit := range numbers {
			m, want := lockinfo.Permits(n, limit), [2]int{kept(n), kept(limit)}
			if m.Permits() != want[0] || m.Limit() != want[1] || m.Kind() != "semaphore" {
				t.Errorf("Permits(%d, %d) has %d and %d, kind %s", n, limit, m.Permits(), m.Limit(), m.Kind())
			}
			if other, known := seen[m]; known && other != want {
				t.Errorf("%v and %v are one mode", other, want)
			}
			seen[m] = want
			right := 1 <= n && n <= limit && limit <= lockinfo.MaxLimit
			switch err := m.Check(); {
			case (err == nil) != right, !right && !errors.Is(err, holdfast.ErrInvalid):
				t.Errorf("Check of Permits(%d, %d): %v", n, limit, err)
			case !right && !strings.Contains(err.Error(), fmt.Sprintf("Permits(%d, %d)", want[0], want[1])):
				t.Errorf("Permits(%d, %d) is refused with %q, without the numbers", n, limit, err)
			}
		}
	}
}

// TestModeIsText checks that the text of a mode can be read again, and that other texts are
// refused.
func TestModeIsText(t *testing.T) {
	for mode, want := range map[lockinfo.Mode]string{
		lockinfo.Exclusive: `"exclusive"`, lockinfo.Shared: `"shared"`,
		lockinfo.Permits(2, 5): `"2 of 5 permits"`, lockinfo.Permits(1, lockinfo.MaxLimit): `"1 of 1000000 permits"`,
	} {
		text, err := json.Marshal(mode)
		if err != nil || string(text) != want {
			t.Errorf("%s: %s, %v; want %s", mode, text, err, want)
		}
		back := lockinfo.Mode(9)
		if err := json.Unmarshal(text, &back); err != nil || back != mode {
			t.Errorf("%s: read back as %s, %v", text, back, err)
		}
	}
	for _, mode := range []lockinfo.Mode{3, 4, 5, lockinfo.Permits(3, 2), math.MaxUint64} {
		if text, err := json.Marshal(mode); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%s: %s, %v; want ErrInvalid", mode, text, err)
		}
	}
	for _, text := range []string{
		`"Shared"`, `""`, `"semaphore"`, `"exclusive "`, `"3 of 2 permits"`, `"0 of 0 permits"`, `"+1 of 2 permits"`, `"01 of 2 permits"`, `"1 of 2 permits "`,
		`"99999999999999999999 of 2 permits"`,
	} {
		mode := lockinfo.Shared
		if err := json.Unmarshal([]byte(text), &mode); !errors.Is(err, holdfast.ErrInvalid) || mode != lockinfo.Shared {
			t.Errorf("%s: %s, %v; want ErrInvalid and no change", text, mode, err)
		}
	}
}

// TestModePlus checks that Plus adds the permits of semaphores, and otherwise returns the latest
// mode.
func TestModePlus(t *testing.T) {
	sum := lockinfo.Exclusive
	for n, want := range []lockinfo.Mode{lockinfo.Permits(0, 5), lockinfo.Permits(1, 5), lockinfo.Permits(3, 5), lockinfo.Permits(6, 5)} {
		if sum = sum.Plus(lockinfo.Permits(n, 5)); sum != want {
			t.Errorf("%d more permits make %s, want %s", n, sum, want)
		}
	}
	if shared := lockinfo.Shared.Plus(lockinfo.Shared); shared != lockinfo.Shared || sum.Plus(lockinfo.Exclusive) != lockinfo.Exclusive {
		t.Errorf("%s, %s", shared, sum.Plus(lockinfo.Exclusive))
	}
}
