package otellock_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestPage checks that docs/metrics.md contains every attribute, event and span of the code.
func TestPage(t *testing.T) {
	page := read(t, "../docs/metrics.md")
	code := read(t, "attributes.go") + read(t, "spans.go")
	named := regexp.MustCompile(`attribute\.Key\("([^"]+)"\)|AddEvent\("([^"]+)"|observe\.\w+: +"([^"]+)"|observe\.\w+: "([^"]+)", |= "(lock\.\w+)"`).FindAllStringSubmatch(code, -1)
	seen := map[string]bool{}
	for _, m := range named {
		name := strings.Join(m[1:], "")
		if seen[name] = true; !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/metrics.md does not say what %s is", name)
		}
	}
	for _, name := range []string{"holdfast.token", "waiting", "outage ended", "place changed", "lost", "lock.hold"} {
		if !seen[name] {
			t.Errorf("%s is not found in the code: is it read?", name)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
