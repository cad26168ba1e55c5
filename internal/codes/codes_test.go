package codes_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/codes"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// TestEveryErrorHasACode compares the table with the errors in the sources.
func TestEveryErrorHasACode(t *testing.T) {
	coded := map[string]string{} // text of the sentinel -> code
	for _, c := range codes.All() {
		coded[c.Err.Error()] = c.Name
	}
	for _, dir := range []string{"../..", "../../driver", "../sentinel", "../../onetime", "../../fence"} {
		declared := sentinels(t, dir)
		if len(declared) == 0 {
			t.Errorf("%s declares no error: is it read?", dir)
		}
		for name, text := range declared {
			if coded[text] == "" {
				t.Errorf("%s: %s has no code", dir, name)
			}
			delete(coded, text)
		}
	}
	for text, name := range coded {
		t.Errorf("%s: no package declares %q", name, text)
	}
}

// sentinels returns the texts of the errors that the package in dir declares, by name.
func sentinels(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, src, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || !strings.HasPrefix(spec.Names[0].Name, "Err") || len(spec.Values) != 1 {
				return true
			}
			if call, ok := spec.Values[0].(*ast.CallExpr); ok { // otherwise it is an alias
				texts[spec.Names[0].Name], err = strconv.Unquote(call.Args[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
			}
			return true
		})
	}
	return texts
}

// TestBothWays checks that each error has a unique code, and that Of finds it.
func TestBothWays(t *testing.T) {
	names, errs := map[string]bool{}, map[error]bool{}
	form := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	for _, c := range codes.All() {
		if names[c.Name] || errs[c.Err] || !form.MatchString(c.Name) || c.Status < 400 || c.Status > 599 {
			t.Errorf("%+v: want a code and an error of its own, and a status that refuses", c)
		}
		names[c.Name], errs[c.Err] = true, true
		if got := codes.Of(fmt.Errorf("acquire: %w", c.Err)); got != c {
			t.Errorf("%v is %q, want %q", c.Err, got.Name, c.Name)
		}
	}
	if c := codes.Of(errors.New("another")); c != (wire.Code{}) {
		t.Errorf("an error of no class is %+v", c)
	}
}

// TestWhatSaysMostCounts checks the code of an error that wraps several sentinels.
func TestWhatSaysMostCounts(t *testing.T) {
	for want, err := range map[string]error{
		"broken":    &lockinfo.BrokenError{Author: "ada"},
		"max-hold":  fmt.Errorf("%w: %w", holdfast.ErrLost, holdfast.ErrMaxHold),
		"stalled":   fmt.Errorf("%w: %w", holdfast.ErrLost, holdfast.ErrStalled),
		"left":      fmt.Errorf("%w: %w", holdfast.ErrLost, holdfast.ErrLeft),
		"lock-held": &holdfast.HeldError{},
		// a SQLite file that was deleted: servers do not stop because of it
		"store-unavailable": fmt.Errorf("%w: %w", holdfast.ErrUnavailable, holdfast.ErrClosed),
		// a wait that the end of the caller's context has ended
		"in-progress": fmt.Errorf("%w while it was %w", context.DeadlineExceeded, &holdfast.InProgressError{}),
	} {
		if c := codes.Of(err); c.Name != want {
			t.Errorf("%v is %q, want %q", err, c.Name, want)
		}
	}
}
