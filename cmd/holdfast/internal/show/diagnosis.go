package show

import (
	"slices"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
)

// Diagnosis returns a line for each check, below the address of the server if one was checked,
// and then the number of failures and warnings.
func Diagnosis(d driver.Diagnosis) string {
	findings := slices.Clone(d.Findings)
	slices.SortStableFunc(findings, func(x, y driver.Finding) int { return strings.Compare(x.Server, y.Server) })
	rows, levels := make([][]string, len(findings)), map[driver.Level]int{}
	for i, f := range findings {
		rows[i] = []string{f.Level.String(), strings.ReplaceAll(f.Key, "_", " "), ASCII(f.Text)}
		levels[f.Level]++
	}
	var b strings.Builder
	server := ""
	for i, line := range layout(gap, rows, func([]int) {}) {
		if s := findings[i].Server; s != server {
			server = s
			b.WriteString("\n" + Plain(server) + "\n")
		}
		b.WriteString(line + "\n")
	}
	return b.String() + "\n" + counted(levels[driver.Fail], "failure") + ", " + counted(levels[driver.Warn], "warning") + "\n"
}
