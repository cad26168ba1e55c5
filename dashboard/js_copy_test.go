package dashboard_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/internal/codeblock"
	"github.com/holdfast-locks/holdfast/internal/exchange"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// A copied is a set of commands that the page offers to copy, for one task on a lock.
type copied struct{ Name, What, Mode, CLI, Curl, Go string }

func offered(t *testing.T) (all []copied) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", "js/commands.js")
	cmd.Dir = jsDir(t)
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &all)
	}
	if err != nil || len(all) == 0 {
		t.Fatalf("%v: %s", err, out)
	}
	return all
}

// argv returns the arguments that a shell passes to the program of a command.
func argv(t *testing.T, command string) []string {
	t.Helper()
	program, _, _ := strings.Cut(command, " ")
	out, err := exec.CommandContext(t.Context(), "sh", "-c", program+`() { printf '%s\0' "$@"; }; `+command).Output()
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// TestCopyCurl sends the requests of the offered curl commands, and checks that the server accepts
// them, for the name that the page shows.
func TestCopyCurl(t *testing.T) {
	engine := mem.New(&mem.Options{History: true})
	locks, err := server.New(engine, &server.Options{Secret: []byte(strings.Repeat("x", 32)), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = locks.Close(t.Context()), engine.Close() })
	handler := exchange.Recorded(t, locks)
	want := map[string][]int{"look": {200}, "history": {200}, "break": {410}, "take": {201, 409}}
	for _, c := range offered(t) {
		args := argv(t, c.Curl)
		path := strings.TrimPrefix(args[len(args)-1], "http://127.0.0.1:7420/ops")
		method, body := "GET", ""
		if i := slices.Index(args, "--json"); i >= 0 {
			method, body = "POST", args[i+1]
		}
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		r.Host = "localhost"
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		if i := slices.Index(args, "-H"); i >= 0 {
			name, value, _ := strings.Cut(args[i+1], ": ")
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		name, _ := json.Marshal(c.Name)
		if !slices.Contains(want[c.What], w.Code) || w.Code < 300 && !strings.Contains(w.Body.String(), `"name":`+string(name)) {
			t.Errorf("%s: %d %s", c.Curl, w.Code, w.Body)
		}
	}
}

// TestCopyCommands checks that docs/reference/cli.md has each offered command with its flags, and
// that the shell passes the name unchanged.
func TestCopyCommands(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	flag := regexp.MustCompile(`^--?[a-zA-Z]+$`)
	shared, _, _ := strings.Cut(string(page), "\n## ") // flags of every command
	shared = strings.ReplaceAll(shared, "`", " ")
	for _, c := range offered(t) {
		args := argv(t, c.CLI)
		_, section, found := strings.Cut(string(page), "\n## holdfast "+args[0]+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		section += shared
		if !found || !slices.Contains(args, c.Name) {
			t.Fatalf("%s: %q", c.CLI, args)
		}
		for i, arg := range args[:slices.Index(args, "--")] {
			if flag.MatchString(arg) && args[i-1] != "-N" && !strings.Contains(section, " "+arg+" ") && !strings.Contains(section, " "+arg+",") {
				t.Errorf("%s: holdfast %s has no %s", c.CLI, args[0], arg)
			}
		}
	}
}

// TestCopyGo checks that the offered Go code compiles, and that its literal is the name.
func TestCopyGo(t *testing.T) {
	var blocks []codeblock.Block
	for i, c := range offered(t) {
		literal := ""
		f, err := parser.ParseFile(gotoken.NewFileSet(), "", "package p\nfunc f() {\n"+c.Go+"\n}", 0)
		if err != nil {
			t.Fatalf("%s: %v", c.Go, err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == gotoken.STRING && literal == "" {
				literal = lit.Value
			}
			return true
		})
		if name, err := strconv.Unquote(literal); err != nil || name != c.Name {
			t.Errorf("%s: Go reads %q, want %q: %v", c.Go, name, c.Name, err)
		}
		blocks = append(blocks, codeblock.Block{Page: "the page", Line: i + 1, Kind: "go", Text: c.Go + "\n"})
	}
	for _, problem := range codeblock.Compile("..", blocks[:12]) { // of one name: the others are alike
		t.Error(problem)
	}
}
