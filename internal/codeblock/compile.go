package codeblock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Compile checks the Go code of pages as the compiler would, with the workspace in
// dir, but allows unused variables. A block is a program, declarations, or
// statements. The blocks of a page form one package: statements see the declarations of
// earlier blocks, in one function that returns an error.
func Compile(dir string, blocks []Block) (problems []error) {
	byPage := map[string][]Block{}
	for _, b := range blocks {
		if b.Kind == "go" || b.Kind == "hidden" {
			byPage[b.Page] = append(byPage[b.Page], b)
		}
	}
	fset, wanted := token.NewFileSet(), map[string]bool{}
	var packages [][]*ast.File
	for _, page := range slices.Sorted(maps.Keys(byPage)) {
		parsed, err := parsePage(fset, byPage[page])
		if err != nil {
			problems = append(problems, err)
			continue
		}
		packages = append(packages, parsed...)
		for _, files := range parsed {
			for _, f := range files {
				for _, spec := range f.Imports {
					wanted[strings.Trim(spec.Path.Value, `"`)] = true
				}
			}
		}
	}
	known, err := exports(dir, slices.Sorted(maps.Keys(wanted)))
	if err != nil {
		return append(problems, err)
	}
	config := types.Config{
		Importer: importer.ForCompiler(fset, "gc", func(at string) (io.ReadCloser, error) { return os.Open(known[at]) }),
		Error: func(err error) {
			if e := (types.Error{}); !errors.As(err, &e) || !e.Soft {
				problems = append(problems, err)
			}
		},
	}
	for _, files := range packages {
		_, _ = config.Check("page", fset, files, nil) // config.Error collects the errors
	}
	return problems
}

// exports returns the files with the export data of the packages, and of their imports.
func exports(dir string, packages []string) (map[string]string, error) {
	known := map[string]string{}
	if len(packages) == 0 {
		return known, nil
	}
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Export"}, packages...)...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, &stderr)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Export string }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return known, nil
		} else if err != nil {
			return nil, err
		}
		known[p.ImportPath] = p.Export
	}
}

// surroundings are the variables that the Go code of every page may use without a declaration. A
// page may declare one of them otherwise in an HTML comment.
var surroundings = map[string]string{
	"ctx":    "context.Context",
	"client": "*holdfast.Client",
	"lease":  "*holdfast.Lease",
	"engine": "driver.Engine",
	"err":    "error",
}

// leftOut finds each "…" of Go code.
var leftOut = regexp.MustCompile(`(?m)\{ … \}|^(\s*)…$`)

func filled(code string) string {
	return leftOut.ReplaceAllStringFunc(code, func(s string) string { return strings.Replace(s, "…", `panic("…")`, 1) })
}

// parsePage returns the packages of a page: one for each program, and one for the rest.
func parsePage(fset *token.FileSet, blocks []Block) (packages [][]*ast.File, err error) {
	var files []*ast.File
	declared, again := map[string]bool{}, ""
	var statements []string
	for _, b := range blocks {
		code := fmt.Sprintf("//line %s:%d\n%s", b.Page, b.Line, filled(b.Text))
		if program, err := parser.ParseFile(fset, "page", code, parser.SkipObjectResolution); err == nil {
			packages = append(packages, []*ast.File{program})
			continue
		}
		if f, err := parser.ParseFile(fset, "page", "package page;\n"+code, parser.SkipObjectResolution); err == nil {
			files = append(files, f)
			note(declared, f)
			if b.Kind == "hidden" {
				again += variables(fset, f, "package page;\n"+code)
			}
			continue
		} else if b.Kind == "hidden" {
			return nil, err
		}
		if _, err := parser.ParseFile(fset, "page", "package page; func _() error {\n"+code+"\n}", parser.SkipObjectResolution); err != nil {
			return nil, err
		}
		statements = append(statements, code)
	}
	body := "package page\nfunc _() error {\n"
	for _, code := range statements {
		body += "{\n" + again + "{\n" + code
	}
	body += strings.Repeat("}}\n", len(statements)) + "return nil\n}\n"
	for _, name := range slices.Sorted(maps.Keys(surroundings)) {
		if !declared[name] {
			body += "var " + name + " " + surroundings[name] + "\n"
		}
	}
	f, err := parser.ParseFile(fset, "page", body, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	files = append(files, f)
	for _, f := range files {
		addImports(f)
	}
	return append(packages, files), nil
}

// note adds to declared the names of the variables and constants that a file declares.
func note(declared map[string]bool, f *ast.File) {
	for _, d := range f.Decls {
		if d, ok := d.(*ast.GenDecl); ok {
			for _, spec := range d.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok {
					for _, id := range v.Names {
						declared[id.Name] = true
					}
				}
			}
		}
	}
}

// variables returns the variable declarations of a file, as code. parsePage repeats it before each
// block, so that a block does not see variables of the same name that earlier blocks declare.
func variables(fset *token.FileSet, f *ast.File, code string) (all string) {
	for _, d := range f.Decls {
		if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.VAR {
			from, to := fset.PositionFor(d.Pos(), false), fset.PositionFor(d.End(), false)
			all += code[from.Offset:to.Offset] + "\n"
		}
	}
	return all
}

// addImports adds imports for the package names that a file uses, unless it has imports.
func addImports(f *ast.File) {
	if len(f.Imports) > 0 {
		return
	}
	paths := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.IsExported() {
			if id, ok := s.X.(*ast.Ident); ok && packagePaths[id.Name] != "" {
				paths[id.Name] = packagePaths[id.Name]
			}
		}
		return true
	})
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		spec := &ast.ImportSpec{Path: &ast.BasicLit{Kind: token.STRING, Value: `"` + paths[name] + `"`}}
		if path.Base(paths[name]) != name {
			spec.Name = ast.NewIdent(name)
		}
		f.Imports = append(f.Imports, spec)
		f.Decls = append([]ast.Decl{&ast.GenDecl{Tok: token.IMPORT, Specs: []ast.Spec{spec}}}, f.Decls...)
	}
}

// packagePaths are the packages that pages may name.
var packagePaths = func() map[string]string {
	const ours = "github.com/holdfast-locks/holdfast"
	all := map[string]string{"holdfast": ours}
	for _, p := range []string{
		"bytes", "context", "database/sql", "encoding/json", "errors", "fmt", "io", "log", "log/slog", "net/http", "net/url", "os",
		"strconv", "strings", "sync", "sync/atomic", "testing", "testing/synctest", "time",
		ours + "/driver", ours + "/driver/rules", ours + "/enginetest", ours + "/fence", ours + "/fence/httpfence", ours + "/fence/sqlfence",
		ours + "/dashboard", ours + "/goredislock", ours + "/holdfasttest", ours + "/memlock", ours + "/observe", ours + "/oncehttp",
		ours + "/onetime", ours + "/otellock", ours + "/pglock", ours + "/promlock", ours + "/quorumlock", ours + "/rediscore",
		ours + "/rediscore/redisfence", ours + "/redislock", ours + "/redislock/member", ours + "/sqlitelock", ours + "/stores", ours + "/wire",
		"github.com/jackc/pgx/v5/pgxpool", "github.com/redis/rueidis", "github.com/prometheus/client_golang/prometheus", "github.com/prometheus/client_golang/prometheus/promhttp",
	} {
		all[path.Base(p)] = p
	}
	all["redis"] = "github.com/redis/go-redis/v9"
	all["cron"] = "github.com/robfig/cron/v3"
	all["redsync"] = "github.com/go-redsync/redsync/v4"
	all["goredis"] = "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	all["otel"] = "go.opentelemetry.io/otel"
	return all
}()
