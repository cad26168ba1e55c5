package holdfasttest_test

import (
	"os"
	"strings"
	"testing"
)

// TestPagesAreTested: what the documentation shows is run here, word for word.
func TestPagesAreTested(t *testing.T) {
	tested := read(t, "docs_test.go")
	doc, blocks := read(t, "doc.go"), 0
	for _, block := range strings.Split(doc, "\n//\n//\t")[1:] {
		code, _, _ := strings.Cut(block, "\n//\n// ")
		code = strings.ReplaceAll(strings.ReplaceAll(code, "\n//\t", "\n"), "\n//\n", "\n\n")
		if blocks++; !strings.Contains(tested, "\n"+code+"\n") {
			t.Errorf("doc.go shows what docs_test.go does not run:\n%s", code)
		}
	}
	if blocks == 0 {
		t.Error("doc.go shows no code")
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
