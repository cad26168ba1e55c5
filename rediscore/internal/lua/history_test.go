package lua

import (
	"reflect"
	"slices"
	"testing"

	"github.com/holdfast-locks/holdfast/rediscore/internal/keys"
)

// TestOneText checks that engines with and without history, and in clusters, send the same texts.
// Only the keys differ that a script derives from another key.
func TestOneText(t *testing.T) {
	t.Parallel()
	plain := reflect.ValueOf(ForEngine(Options{}))
	for _, o := range []Options{{History: true}, {Cluster: true}, {History: true, Cluster: true}} {
		others := reflect.ValueOf(ForEngine(o))
		for i := range plain.NumField() {
			what := plain.Type().Field(i).Name
			one, other := plain.Field(i).Interface().(*Script), others.Field(i).Interface().(*Script)
			_, sha := one.Source()
			if _, called := other.Source(); called != sha {
				t.Errorf("%s: another text with %+v", what, o)
			}
			more := slices.Concat(other.Keys, other.EachKeys)[len(one.Keys)+len(one.EachKeys):]
			if more = slices.DeleteFunc(more, func(k keys.Kind) bool { return k == keys.History || k == keys.Crowd }); len(more) > 0 {
				t.Errorf("%s: further keys with %+v: %q", what, o, more)
			}
			if all := slices.Concat(one.Keys, one.EachKeys); slices.Contains(all, keys.History) || slices.Contains(all, keys.Crowd) {
				t.Errorf("%s: an engine without history sends the key of one", what)
			}
		}
	}
}
