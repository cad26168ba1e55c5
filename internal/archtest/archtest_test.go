// Package archtest checks the rules of the repository's layout.
package archtest

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const root = "github.com/holdfast-locks/holdfast"

// base lists the packages on which all others build. They import only each other.
var base = []string{"driver", "lockinfo", "observe", "wire", "internal/named", "internal/sentinel"}

// A room lists the packages that may use a package with a cost, such as an HTTP server or SQL.
type room struct {
	importers []string // packages that import it
	users     []string // packages that need it only through others
}

// rooms lists the packages that only some packages may use. A program that locks in Redis pays for
// neither an HTTP server nor SQL. Engines and guards build on the driver, not on the library or on
// each other. Only package stores, the command, the examples and the tests choose an engine. A name
// that ends in "..." means all packages whose names begin with it.
var rooms = map[string]room{
	"net/http": {
		importers: []string{"dashboard", "fence/httpfence", "httplock...", "internal/header", "internal/exchange", "oncehttp", "internal/problem", "cmd/holdfast/internal/demo", "cmd/holdfast/internal/serve", "examples/dashboard", "systest..."},
		users:     []string{"cmd/holdfast...", "examples...", "promlock", "stores"}, // promlock: expvar, which the client library offers
	},
	"database/sql": {
		importers: []string{"fence/sqlfence", "pglock", "sqlitelock", "examples...", "systest..."}, // pglock: Hold; pgx needs it, too
		users:     []string{"stores", "cmd/holdfast..."},
	},
	root: {
		importers: []string{"fence/httpfence", "httplock/server...", "internal/tally", "oncehttp", "onetime", "otellock", "promlock", "internal/codes", "internal/view", "holdfasttest", "cmd/holdfast...", "examples...", "systest...", "internal/onetimetest", "stores"},
		users:     []string{"dashboard"},
	},
	root + "/rediscore":       {importers: []string{"rediscore/...", "redislock...", "goredislock"}, users: []string{"stores", "cmd/holdfast...", "examples...", "systest..."}},
	root + "/redislock":       {importers: []string{"redislock/...", "stores", "systest..."}, users: []string{"cmd/holdfast...", "examples..."}},
	root + "/goredislock":     {importers: []string{"systest..."}},
	root + "/quorumlock":      {importers: []string{"stores", "cmd/holdfast/internal/store", "systest..."}, users: []string{"cmd/holdfast...", "examples..."}},
	root + "/sqlitelock":      {importers: []string{"stores", "cmd/holdfast/internal/store"}, users: []string{"cmd/holdfast...", "examples...", "systest..."}},
	root + "/pglock":          {importers: []string{"stores"}, users: []string{"cmd/holdfast...", "examples...", "systest..."}},
	root + "/httplock":        {importers: []string{"stores"}, users: []string{"cmd/holdfast...", "examples...", "systest..."}},
	root + "/httplock/server": {importers: []string{"dashboard", "cmd/holdfast..."}, users: []string{"examples/dashboard"}},
	root + "/internal/mem":    {importers: []string{"memlock...", "holdfasttest", "systest..."}, users: []string{"stores", "cmd/holdfast...", "examples..."}},
	root + "/stores":          {importers: []string{"cmd/holdfast...", "examples...", "systest..."}},
}

// A pkg is a package as go list describes it.
type pkg struct {
	ImportPath, Doc                    string
	Imports, TestImports, XTestImports []string
	Deps                               []string // Imports, and all their imports
	Module                             struct{ Path string }
}

func TestBase(t *testing.T) {
	for _, p := range list(t) {
		for _, imp := range p.Imports {
			if slices.Contains(base, relative(p.ImportPath)) && ours(imp) && !slices.Contains(base, relative(imp)) {
				t.Errorf("%s imports %s, want packages of %q only", relative(p.ImportPath), relative(imp), base)
			}
		}
	}
}

func TestPackagesNeedNoMore(t *testing.T) {
	pkgs := list(t)
	for what, room := range rooms {
		for _, p := range pkgs {
			name := relative(p.ImportPath)
			importer := covers(room.importers, name) || p.ImportPath == what
			switch {
			case slices.Contains(p.Imports, what) && !importer:
				t.Errorf("%s imports %s", name, what)
			case slices.Contains(p.Deps, what) && !importer && !covers(room.users, name):
				t.Errorf("%s needs %s: go list -deps ./%[1]s names it", name, what)
			}
		}
		for _, name := range slices.Concat(room.importers, room.users) {
			if !slices.ContainsFunc(pkgs, func(p pkg) bool {
				return covers([]string{name}, relative(p.ImportPath)) && slices.Contains(p.Deps, what)
			}) {
				t.Errorf("%s does not need %s: take it out of rooms", name, what)
			}
		}
	}
}

// covers reports whether names contains a package, or a pattern that matches it.
func covers(names []string, path string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		prefix, family := strings.CutSuffix(name, "...")
		return path == name || family && strings.HasPrefix(path, prefix)
	})
}

// TestRootModuleNeedsOnlyTheStandardLibrary checks that users of the library get no other module
// than the root module.
func TestRootModuleNeedsOnlyTheStandardLibrary(t *testing.T) {
	for _, p := range list(t) {
		if p.Module.Path != root {
			continue
		}
		for _, imp := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if host, _, _ := strings.Cut(imp, "/"); strings.Contains(host, ".") && !ours(imp) {
				t.Errorf("%s imports %s, want the standard library only, in tests too", relative(p.ImportPath), imp)
			}
		}
	}
	if strings.Contains(read(t, "go.mod"), "require") {
		t.Error("the root go.mod requires a module")
	}
}

func TestModulesHaveNoReplace(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.GoMod}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range strings.Fields(string(out)) {
		if mod, err := os.ReadFile(file); err != nil || strings.Contains(string(mod), "replace") {
			t.Errorf("%s has a replace directive, which go install refuses (%v)", file, err)
		}
	}
}

func TestPackageDocs(t *testing.T) {
	for _, p := range list(t) {
		if p.Doc == "" && relative(p.ImportPath) != "internal/archtest" {
			t.Errorf("%s has no package comment", relative(p.ImportPath))
		}
	}
}

func ours(path string) bool { return path == root || strings.HasPrefix(path, root+"/") }

// relative returns the path of a package relative to the repository's root.
func relative(path string) string {
	if path == root {
		return "."
	}
	return strings.TrimPrefix(path, root+"/")
}

func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Doc,Imports,TestImports,XTestImports,Deps,Module", "work")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var pkgs []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); err == io.EOF {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}
