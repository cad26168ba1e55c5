package form

import (
	"reflect"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/holders"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// TestHolders checks that the memory of the last holder distinguishes holders by every field.
func TestHolders(t *testing.T) {
	labels := map[string]string{"a": "b"}
	full := lockinfo.Holder{
		Host: "h", PID: 1, User: "u", Program: "p", Label: "l", Reason: "r", Labels: labels, Person: true, Caller: "c", Once: true, Fingerprint: "f",
	}
	all := []lockinfo.Holder{full}
	for i := range reflect.TypeFor[lockinfo.Holder]().NumField() {
		if reflect.ValueOf(full).Field(i).IsZero() {
			t.Fatalf("field %d of a full holder is zero", i)
		}
		h := full
		reflect.ValueOf(&h).Elem().Field(i).SetZero()
		all = append(all, h)
	}
	var w Holders
	for _, first := range all {
		for _, second := range all {
			w.Text(first)
			if got, want := w.Text(second), holders.Text(second); got != want {
				t.Errorf("%q after %q, want %q", got, holders.Text(first), want)
			}
		}
	}
	w.Text(full)
	labels["a"] = "c"
	if got, want := w.Text(full), holders.Text(full); got != want {
		t.Errorf("%q when its labels have changed, want %q", got, want)
	}
	if n := testing.AllocsPerRun(100, func() { w.Text(full) }); n != 0 {
		t.Errorf("the same holder again costs %v allocations", n)
	}
}
