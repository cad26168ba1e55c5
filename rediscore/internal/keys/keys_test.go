package keys

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// TestSlots compares our slots with the server's.
func TestSlots(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t, "--cluster-enabled", "yes")
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
		keys, err := New(prefix)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			want := keySlot(t, server, keys.Lock(name))
			if got := Slot(keys.Lock(name)); got != want {
				t.Errorf("slot of %q: %d, the server says %d", keys.Lock(name), got, want)
			}
			for _, key := range []string{keys.Key(Fence, name), keys.Key(Mark, name), keys.Of([]Kind{Cancelled}, name, lockinfo.NewLeaseID())[0]} {
				if got := keySlot(t, server, key); got != want {
					t.Errorf("%q is in slot %d, its lock in %d", key, got, want)
				}
			}
			if got, ok := keys.ListedName(Locks, keys.Key(Fence, name)); !ok || got != name {
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
		_, err := New(prefix)
		if ok {
			drivertest.WantIs(t, prefix, err, nil)
		} else {
			drivertest.WantIs(t, prefix, err, driver.ErrInvalid)
		}
	}
}

// FuzzKeyspace checks that the companion of any name is in its slot, and that the name can be read
// back.
func FuzzKeyspace(f *testing.F) {
	f.Add("p:", "orders/42")
	f.Add("{t}", "a}b{c")
	f.Add("", "}:fence:")
	f.Fuzz(func(t *testing.T, prefix, name string) {
		keys, err := New(prefix)
		if err != nil || driver.CheckName(name) != nil || keys.Check(name) != nil {
			return
		}
		fence := keys.Key(Fence, name)
		if Slot(fence) != Slot(keys.Lock(name)) {
			t.Errorf("%q is not in the slot of %q", fence, keys.Lock(name))
		}
		if got, ok := keys.ListedName(Locks, fence); !ok || got != name {
			t.Errorf("%q reads back as %q, %v", name, got, ok)
		}
		keys.ListedName(Locks, name) // must not panic
	})
}

// TestTagOf checks that each slot has a tag, and that finding it costs almost nothing compared with
// a search through as many numbers as there are slots.
func TestTagOf(t *testing.T) {
	for want := range uint16(16384) {
		if tag := tagOf(want); Slot(tag) != want {
			t.Fatalf("the tag %q is in slot %d, want %d", tag, Slot(tag), want)
		}
	}
	var took []time.Duration // the median counts, because a busy machine pauses
	for n := range 51 {
		start := time.Now()
		slotTag(fmt.Sprint("{}", n))
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	found := took[25]
	start := time.Now()
	for n := range 16384 {
		Slot(fmt.Sprint(n))
	}
	if searched := time.Since(start); found > searched/20 {
		t.Errorf("a tag takes %s, and a search %s", found, searched)
	}
}

// TestVaultSlots checks that both keys of a token are in one slot, whatever the prefix.
func TestVaultSlots(t *testing.T) {
	for _, prefix := range []string{"", "p:", "{tag}:"} {
		k, err := New(prefix)
		if err != nil {
			t.Fatal(err)
		}
		if keys := k.Token(strings.Fields(Vault), driver.Digest(strings.Repeat("0123456789abcdef", 4))); Slot(keys[0]) != Slot(keys[1]) || keys[0] == keys[1] {
			t.Errorf("prefix %q: the keys %q are in the slots %d and %d", prefix, keys, Slot(keys[0]), Slot(keys[1]))
		}
	}
}

// keySlot returns the slot that a server computes.
func keySlot(t *testing.T, server *testsvc.Server, key string) uint16 {
	t.Helper()
	reply, err := server.Do("CLUSTER", "KEYSLOT", key)
	slot, bad := strconv.ParseUint(reply, 10, 16)
	if err != nil || bad != nil {
		t.Fatalf("slot of %q: %q, %v", key, reply, err)
	}
	return uint16(slot)
}
