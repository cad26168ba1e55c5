package lua

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestLayouts: a script uses only such places in KEYS and ARGV as its layout
// names, never by a number, and none of its names means two places.
func TestLayouts(t *testing.T) {
	t.Parallel()
	comment := regexp.MustCompile(`--.*`)
	used := regexp.MustCompile(`(KEYS|ARGV)\[(?:[^][]* \+ )?(\w+)\]`)
	for _, set := range []any{ForEngine(true), ForEngine(false), ForMember()} {
		scripts := reflect.ValueOf(set)
		for i := range scripts.NumField() {
			what, s := scripts.Type().Field(i).Name, scripts.Field(i).Interface().(*Script)
			all := slices.Concat(texts(s.Keys), texts(s.EachKeys), s.Args, s.EachArgs)
			slices.Sort(all)
			if got := slices.Compact(slices.Clone(all)); len(got) != len(all) {
				t.Errorf("%s: a name is there twice: %q", what, all)
			}
			for _, at := range used.FindAllStringSubmatch(comment.ReplaceAllString(s.Text, ""), -1) {
				list := slices.Concat(texts(s.Keys), texts(s.EachKeys))
				if at[1] == "ARGV" {
					list = slices.Concat(s.Args, s.EachArgs)
				}
				if !slices.Contains(list, strings.ToLower(at[2])) {
					t.Errorf("%s: %s is not in its layout", what, at[0])
				}
			}
		}
	}
}

func texts[Name ~string](names []Name) (all []string) {
	for _, name := range names {
		all = append(all, string(name))
	}
	return all
}
