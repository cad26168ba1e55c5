package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/codeblock"
)

// aside reports whether the checks of code blocks skip a page. TestPage and TestCommandsInPages
// check the output of --help. The changelog, the decisions and the reports of benchmarks may show
// code that no longer exists.
func aside(page string) bool {
	return page == "docs/reference/cli.md" || page == "CHANGELOG.md" || strings.HasPrefix(page, "docs/adr/") || strings.HasPrefix(page, "docs/bench/")
}

// blocks returns the code blocks of all pages. It fails the test unless every page is well-formed,
// and every block is of a kind that a test checks, or names its test.
func blocks(t *testing.T) (all []codeblock.Block) {
	t.Helper()
	texts, known := pagesOfUsers(t), knownCases(t)
	for _, page := range slices.Sorted(maps.Keys(texts)) {
		found, problems := codeblock.Find(page, texts[page])
		for _, err := range problems {
			t.Error(err)
		}
		for _, b := range found {
			by := b.CheckedBy
			if by == "" {
				by = codeblock.Checks[b.Kind]
			}
			switch {
			case by == "":
				t.Errorf("%s: nothing checks blocks of the kind %q: write <!-- checked by TestX --> before it, and TestX", b.At(), b.Kind)
			case !known[by]:
				t.Errorf("%s: there is no test %s", b.At(), by)
			}
		}
		all = append(all, found...)
	}
	return all
}

func pagesOfUsers(t *testing.T) map[string]string {
	t.Helper()
	all := pages(t)
	maps.DeleteFunc(all, func(page, _ string) bool { return aside(page) })
	return all
}

// TestPagesCompile checks that the Go code of the pages compiles, that their JSON is valid, and
// that some test checks every code block.
func TestPagesCompile(t *testing.T) {
	all := blocks(t)
	if len(all) < 100 {
		t.Errorf("%d blocks, want at least 100: are the pages read?", len(all))
	}
	own := func(b codeblock.Block) bool { return b.CheckedBy != "" }
	for _, err := range codeblock.Compile(tree, slices.DeleteFunc(slices.Clone(all), own)) {
		t.Error(err)
	}
	for _, b := range all {
		if b.Kind != "json" || b.CheckedBy != "" {
			continue
		}
		for d := json.NewDecoder(bytes.NewBufferString(b.Text)); ; {
			var v any
			if err := d.Decode(&v); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Errorf("%s: %v", b.At(), err)
				break
			}
		}
	}
}
