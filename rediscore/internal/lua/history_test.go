package lua

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/rediscore/internal/keys"
)

// TestNothingOfHistoryWithoutIt: the scripts of engines that write no history have not a
// line, a key or an argument of it, and those of engines that do lack nothing of what
// they are made of.
func TestNothingOfHistoryWithoutIt(t *testing.T) {
	t.Parallel()
	without, with := reflect.ValueOf(ForEngine(Options{Foreign: true})), reflect.ValueOf(ForEngine(Options{Foreign: true, History: true}))
	differ := 0
	for i := range without.NumField() {
		what := without.Type().Field(i).Name
		if what == "History" {
			continue
		}
		off, on := without.Field(i).Interface().(*Script), with.Field(i).Interface().(*Script)
		text, sha := off.Source()
		for _, word := range []string{strings.TrimSpace(remembering), "RPUSH", "LPUSH", "listened", "note(", "s.history"} {
			if strings.Contains(text, word) {
				t.Errorf("%s: %q is in the script of an engine without history", what, word)
			}
		}
		if all := slices.Concat(off.Keys, off.EachKeys); slices.Contains(all, keys.History) {
			t.Errorf("%s: an engine without history sends the key of one", what)
		}
		if args := slices.Concat(off.Args, off.EachArgs); slices.Contains(args, "lost") || slices.Contains(args, "remember") {
			t.Errorf("%s: an engine without history sends arguments of one: %q", what, args)
		}
		other, called := on.Source()
		if called == sha {
			continue
		}
		differ++
		if strings.Contains(other, strings.TrimSpace(remembering)) {
			t.Errorf("%s: a line of history is not taken for one", what)
		}
	}
	if differ != 10 {
		t.Errorf("%d scripts write history, want 10", differ)
	}
}
