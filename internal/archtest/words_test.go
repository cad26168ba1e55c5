package archtest

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// sources returns the text of the files that match a pattern below the root, without tests.
func sources(t *testing.T, pattern string) string {
	t.Helper()
	files, err := fs.Glob(os.DirFS(tree), pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	var b strings.Builder
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		b.WriteString(read(t, file))
	}
	return b.String()
}

// wordTable returns the rows of the table of docs/internals/engines.md whose first column has the
// given title.
func wordTable(t *testing.T, title string) (rows [][]string) {
	t.Helper()
	_, table, found := strings.Cut(read(t, "docs/internals/engines.md"), "\n| "+title+" | ")
	table, _, _ = strings.Cut(table, "\n\n")
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) == 7 && !strings.HasPrefix(cells[1], "-") {
			rows = append(rows, cells[1:6])
		}
	}
	if !found || len(rows) < 10 {
		t.Fatalf("%d rows in the table of each %s, want 10 at least: is it read?", len(rows), title)
	}
	return rows
}

var inCode = regexp.MustCompile("`([A-Za-z_]+)`")

// TestWordsOfEngines checks that the names of steps and things in docs/internals/engines.md are
// their names in Go, SQL and Lua.
func TestWordsOfEngines(t *testing.T) {
	schema := sources(t, "sqlitelock/schema.sql")
	const goFunc, luaFunc = `(?m)^func (\([^)]*\) )?%s\(`, `(?m)^(local )?function %s\(`
	for title, columns := range map[string][4]struct{ text, form string }{
		"step": {
			{sources(t, "internal/mem/*.go") + sources(t, "driver/mailbox/*.go"), goFunc},
			{sources(t, "sqlitelock/*.go"), goFunc + "|" + `(?m)^\s%s +=`},
			{sources(t, "rediscore/internal/lua/*.lua"), luaFunc},
			{sources(t, "pglock/sql/*.sql"), `(?m)^CREATE OR REPLACE FUNCTION holdfast\.%s\(`},
		},
		"thing": {
			{sources(t, "driver/*.go") + sources(t, "lockinfo/*.go"), `(?m)^\t%s +\S`},
			{schema, `(?m)^\t%s +(TEXT|INTEGER|BLOB) `},
			{sources(t, "rediscore/internal/lua/*.lua"), `\b%s\b`},
			{sources(t, "pglock/sql/schema.sql"), `(?m)^\t%s +(text|integer|bigint|boolean) `},
		},
	} {
		for _, row := range wordTable(t, title) {
			named := 0
			for i, column := range columns {
				for _, m := range inCode.FindAllStringSubmatch(row[i+1], -1) {
					named++
					if !regexp.MustCompile(strings.ReplaceAll(column.form, "%s", m[1])).MatchString(column.text) {
						t.Errorf("%s%s: there is no %s", title, row[0], m[1])
					}
				}
			}
			if named == 0 {
				t.Errorf("%s%s: it has no name anywhere", title, row[0])
			}
		}
	}
	has := map[string]bool{}
	for _, row := range wordTable(t, "thing") {
		for _, m := range inCode.FindAllStringSubmatch(row[2], -1) {
			has[m[1]] = true
		}
	}
	for _, table := range []string{"lease", "place", "token"} {
		_, columns, _ := strings.Cut(schema, "CREATE TABLE "+table+" (")
		columns, _, _ = strings.Cut(columns, ") STRICT")
		all := regexp.MustCompile(`(?m)^\t(\w+) +(?:TEXT|INTEGER) `).FindAllStringSubmatch(columns, -1)
		if len(all) < 2 {
			t.Errorf("%d columns of %s: is the schema read?", len(all), table)
		}
		for _, column := range all {
			if !has[column[1]] {
				t.Errorf("the column %s of %s is not in the table", column[1], table)
			}
		}
	}
}
