package lua

import (
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"testing"
)

// TestScriptsAreMadeWhenNeeded checks that an engine spends nothing on scripts that it does not
// send.
func TestScriptsAreMadeWhenNeeded(t *testing.T) { // not parallel: it counts the allocations of the process
	var before, between, after runtime.MemStats
	runtime.ReadMemStats(&before)
	scripts := ForEngine(Options{})
	runtime.ReadMemStats(&between)
	text, sha := scripts.Acquire.Source()
	runtime.ReadMemStats(&after)
	all, one := between.TotalAlloc-before.TotalAlloc, after.TotalAlloc-between.TotalAlloc
	if len(text) < 1000 || len(sha) != 40 || one < uint64(len(text)) {
		t.Fatalf("a text of %d bytes, called %q, has cost %d", len(text), sha, one)
	}
	if all > one {
		t.Errorf("the scripts of an engine cost %d bytes before one is needed, and a text %d", all, one)
	}
	if again, _ := scripts.Acquire.Source(); again != text {
		t.Error("a script has two texts")
	}
}

// TestLayouts checks that the scripts have names and no numbers in KEYS and ARGV, and that the
// texts sent have no names: each name is in the script's layout, and means one index.
func TestLayouts(t *testing.T) {
	t.Parallel()
	all, err := files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	number := regexp.MustCompile(`(KEYS|ARGV)\[[^]]*[0-9][^]]*\]`)
	for _, file := range all {
		text, err := files.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, place := range number.FindAllString(string(text), -1) {
			t.Errorf("%s: %s: want the name of what is there", file.Name(), place)
		}
	}
	name := regexp.MustCompile(`(KEYS|ARGV)\[[^]]*[A-Z][^]]*\]|(HEAD|EACH)_[A-Z]+`)
	for _, set := range []any{ForEngine(Options{}), ForEngine(Options{History: true}), ForEngine(Options{History: true, Cluster: true}), ForMember()} {
		scripts := reflect.ValueOf(set)
		for i := range scripts.NumField() {
			what, s := scripts.Type().Field(i).Name, scripts.Field(i).Interface().(*Script)
			all := slices.Concat(s.Keys, s.EachKeys, s.Args, s.EachArgs)
			slices.Sort(all)
			text, _ := s.Source()
			if once := slices.Compact(slices.Clone(all)); len(once) != len(all) {
				t.Errorf("%s: a name is there twice: %q", what, all)
			}
			for _, place := range name.FindAllString(text, -1) {
				t.Errorf("%s: %s is not in its layout", what, place)
			}
		}
	}
}
