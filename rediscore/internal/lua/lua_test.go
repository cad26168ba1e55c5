package lua

import (
	"reflect"
	"regexp"
	"slices"
	"testing"
)

// TestLayouts: the scripts are written without a number in KEYS and ARGV, and
// in what is sent there is no name in them: each is in the script's layout, and
// means one place.
func TestLayouts(t *testing.T) {
	t.Parallel()
	files, err := drawer.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	number := regexp.MustCompile(`(KEYS|ARGV)\[[^]]*[0-9][^]]*\]`)
	for _, file := range files {
		text, err := drawer.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, place := range number.FindAllString(string(text), -1) {
			t.Errorf("%s: %s: want the name of what is there", file.Name(), place)
		}
	}
	name := regexp.MustCompile(`(KEYS|ARGV)\[[^]]*[A-Z][^]]*\]|(HEAD|EACH)_[A-Z]+`)
	for _, set := range []any{ForEngine(true), ForEngine(false), ForMember()} {
		scripts := reflect.ValueOf(set)
		for i := range scripts.NumField() {
			what, s := scripts.Type().Field(i).Name, scripts.Field(i).Interface().(*Script)
			all := slices.Concat(s.Keys, s.EachKeys, s.Args, s.EachArgs)
			slices.Sort(all)
			if once := slices.Compact(slices.Clone(all)); len(once) != len(all) {
				t.Errorf("%s: a name is there twice: %q", what, all)
			}
			for _, place := range name.FindAllString(s.Text, -1) {
				t.Errorf("%s: %s is not in its layout", what, place)
			}
		}
	}
}
