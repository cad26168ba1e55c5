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

// base lists the packages on which all others stand. They import each other only.
var base = []string{"driver", "lockinfo", "observe", "wire", "internal/named", "internal/sentinel"}

// A room lists who may use a package that not every program should pay for, or depend on.
type room struct {
	importers []string // those that import it
	users     []string // those that need it through others only
}

// rooms lists the packages with walls around them: a program that takes a lock in Redis pays for
// neither an HTTP server nor SQL; engines and guards stand on the driver, not on the library or on
// each other; and only package stores, the command, the examples and the tests choose an engine. A
// name that ends in "..." stands for all packages that begin with it.
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

// A pkg is what go list says of a package.
type pkg struct {
	ImportPath, Doc                    string
	Imports, TestImports, XTestImports []string
	Deps                               []string // of Imports, and of all that those import
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

// covers reports whether one of names is that of a package.
func covers(names []string, path string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		prefix, family := strings.CutSuffix(name, "...")
		return path == name || family && strings.HasPrefix(path, prefix)
	})
}

// Whoever imports the library gets the root module.
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

// relative returns the path of a package below the repository's root.
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
