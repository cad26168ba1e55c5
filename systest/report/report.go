// Package report collects the results of the fault tests.
package report

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var file = flag.String("report", "", "file to which the fault tests append what they measured, as rows of a Markdown table")

// Row adds a row to the report, and to the log of the test: the fault, the property that must
// hold in spite of it, and the result.
func Row(t testing.TB, fault, must, format string, args ...any) {
	t.Helper()
	saw := fmt.Sprintf(format, args...)
	t.Logf("%s: %s", fault, saw)
	if *file == "" {
		return
	}
	f, err := os.OpenFile(*file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	if t.Failed() {
		saw = "FAILED: " + saw
	}
	// One write: packages may run at the same time.
	if _, err := fmt.Fprintf(f, "| %s | %s | %s | `%s` |\n", cell(fault), cell(must), cell(saw), t.Name()); err != nil {
		t.Error(err)
	}
}

// cell returns text that does not end its cell of the table.
func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ").Replace(text)
}
