package show

import (
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
)

// Diagnosis has one line for each check.
func Diagnosis(d driver.Diagnosis) string {
	var rows [][]string
	for _, f := range d.Findings {
		what := strings.ReplaceAll(f.Key, "_", " ")
		if f.Server != "" {
			what += " " + f.Server
		}
		rows = append(rows, []string{f.Level.String(), what, f.Text})
	}
	return Columns(2, rows)
}
