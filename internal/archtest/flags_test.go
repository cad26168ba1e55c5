package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/driver"
)

// asked returns the methods for which file tests an engine: optional interfaces of package driver,
// or their methods, in type assertions and type switches.
func asked(file *ast.File) (all []string) {
	var optional []string
	features := reflect.TypeFor[driver.Features]()
	for i := range features.NumField() {
		if of := features.Field(i).Type; of.Kind() == reflect.Interface {
			optional = append(optional, of.Name())
			for j := range of.NumMethod() {
				optional = append(optional, of.Method(j).Name)
			}
		}
	}
	about := func(e ast.Expr) {
		var name string
		switch e := e.(type) {
		case *ast.SelectorExpr:
			if of, ok := e.X.(*ast.Ident); ok && of.Name == "driver" {
				name = e.Sel.Name
			}
		case *ast.InterfaceType:
			for _, m := range e.Methods.List {
				for _, n := range m.Names {
					name = n.Name
				}
			}
		}
		if slices.Contains(optional, name) {
			all = append(all, name)
		}
	}
	for n := range ast.Preorder(file) {
		switch n := n.(type) {
		case *ast.TypeAssertExpr:
			about(n.Type)
		case *ast.TypeSwitchStmt:
			for _, clause := range n.Body.List {
				for _, e := range clause.(*ast.CaseClause).List {
					about(e)
				}
			}
		}
	}
	return all
}

// TestFlagsDecide checks that only driver.FeaturesOf and driver.Forward test which methods an
// engine has.
func TestFlagsDecide(t *testing.T) {
	parse := func(path string, text any) *ast.File {
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	const asks = `package p
		func f(e driver.Engine) {
			_, _ = e.(driver.Queuer)
			_, _ = e.(interface{ List() })
			switch e.(type) { case driver.Vault: }
			_, _ = e.(driver.Engine)
		}`
	if got, want := asked(parse("asks.go", asks)), []string{"Queuer", "List", "Vault"}; !slices.Equal(got, want) {
		t.Errorf("the check sees %q, want %q", got, want)
	}
	files := 0
	walk(t, ".", func(name string) {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return
		}
		files++
		for _, what := range asked(parse(name, read(t, name))) {
			t.Errorf("%s asks an engine for %s: ask driver.Features", name, what)
		}
	})
	if files < 200 {
		t.Errorf("%d files were read", files)
	}
}
