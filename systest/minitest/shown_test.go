package minitest

import (
	"os"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/codeblock"
)

// TestPagesAreTested checks that the Go code of docs/testing.md, and of the documentation of
// package holdfasttest, occurs word for word in tests that are run.
func TestPagesAreTested(t *testing.T) {
	tested := read(t, "../../holdfasttest/docs_test.go") + read(t, "pages_test.go")
	blocks, problems := codeblock.Find("docs/testing.md", read(t, "../../docs/testing.md"))
	for _, err := range problems {
		t.Error(err)
	}
	shown := 0
	for _, b := range blocks {
		if b.Kind != "go" {
			continue
		}
		if shown++; !strings.Contains(tested, "\n"+b.Text) {
			t.Errorf("%s shows what no test runs:\n%s", b.At(), b.Text)
		}
	}
	_, doc, _ := strings.Cut(read(t, "../../holdfasttest/doc.go"), "\n//\n//\t")
	doc, _, _ = strings.Cut(doc, "\n//\n// ")
	for block := range strings.SplitSeq(doc, "\n//\n//\t") {
		shown++
		if code := strings.ReplaceAll(block, "\n//\t", "\n"); !strings.Contains(tested, code+"\n") {
			t.Errorf("doc.go shows what no test runs:\n%s", code)
		}
	}
	if shown < 6 {
		t.Errorf("%d pieces of code, want at least 6: are the pages read?", shown)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
