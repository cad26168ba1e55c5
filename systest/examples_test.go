package systest

import (
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestExamplesOfRedislock runs the Examples that need a server, which go test only compiles.
func TestExamplesOfRedislock(t *testing.T) {
	server := testsvc.Redis(t)
	out := runExamples(t, "../redislock/example_test.go", map[string]string{
		"redis://localhost:6379": server.URL,
		`"localhost:6379"`:       `"` + server.Addr + `"`,
	})
	if want := "until ctx ends nobody else works on reports/nightly\nrebuilding\n"; out != want {
		t.Errorf("they print %q, want %q", out, want)
	}
	if rate, err := server.Do("GET", "rates/EUR"); rate != "1.08" || err != nil {
		t.Errorf("rates/EUR is %q, %v", rate, err)
	}
}

// TestExampleOfSqlfence runs the Example that needs a database.
func TestExampleOfSqlfence(t *testing.T) {
	server := testsvc.Postgres(t)
	db, err := sql.Open("pgx", server.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE seats (id text PRIMARY KEY, guest text NOT NULL); INSERT INTO seats VALUES ('seat/12A', '')`); err != nil {
		t.Fatal(err)
	}
	if out := runExamples(t, "../fence/sqlfence/example_test.go", map[string]string{
		`"postgres://localhost/theatre"`: "`" + server.DSN + "`",
		`"log"`:                          "\"log\"\n_ \"github.com/jackc/pgx/v5/stdlib\"",
	}); out != "" {
		t.Errorf("it prints %q", out)
	}
	var guest string
	if err := db.QueryRowContext(t.Context(), `SELECT guest FROM seats`).Scan(&guest); guest != "Ada" || err != nil {
		t.Errorf("the seat is sold to %q, %v", guest, err)
	}
}

var anExample = regexp.MustCompile(`(?m)^func (Example\w*)\(\)`)

// runExamples makes a program of the Examples in a file, runs it, and returns its output. Each text
// of replace must occur in the file, and is replaced.
func runExamples(t *testing.T, file string, replace map[string]string) string {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)^package \w+$`).ReplaceAllString(string(source), "package main")
	for old, replacement := range replace {
		if !strings.Contains(text, old) {
			t.Fatalf("%s has no %s", file, old)
		}
		text = strings.ReplaceAll(text, old, replacement)
	}
	text += "\nfunc main() {\n"
	for _, m := range anExample.FindAllStringSubmatch(text, -1) {
		text += "\t" + m[1] + "()\n"
	}
	program := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(program, []byte(text+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "run", program).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: go run: %v\n%s", file, err, out)
	}
	return string(out)
}
