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

// mayImport lists, for each package of this repository, the packages of this
// repository that it may import outside its tests: engines know the driver
// and the guards, what is built on locks knows the library, and only
// stores, the command and the examples know engines. A package that is not listed fails
// the test.
var mayImport = map[string][]string{
	".":                                   {"driver", "internal/ask", "internal/clock", "internal/holders", "internal/inside", "internal/oncerecord", "internal/places", "internal/schedule", "internal/self", "internal/tell", "internal/turns", "internal/wait", "observe"},
	"dashboard":                           {"driver", "httplock/server", "httplock/server/caller", "wire", "internal/header", "internal/problem"},
	"driver":                              {"internal/named", "internal/sentinel"},
	"driver/mailbox":                      {"driver"},
	"driver/rules":                        {"driver"},
	"enginetest":                          {"driver"},
	"fence":                               {"driver", "internal/tell", "observe"},
	"fence/httpfence":                     {".", "fence", "observe", "wire", "internal/codes", "internal/problem"},
	"fence/sqlfence":                      {"driver", "fence", "observe"},
	"holdfasttest":                        {".", "driver", "internal/ask", "internal/hook", "internal/mem", "internal/testsvc"},
	"memlock":                             {"driver", "internal/mem"},
	"memlock/member":                      {"driver", "internal/mem"},
	"oncehttp":                            {".", "driver", "internal/tell", "observe", "wire", "internal/codes", "internal/problem", "internal/header"},
	"lockinfo":                            {"internal/named", "internal/sentinel"},
	"internal/holders":                    {},
	"internal/modes":                      {"internal/sentinel"},
	"internal/named":                      {},
	"internal/sentinel":                   {},
	"observe":                             {},
	"internal/tally":                      {".", "observe"},
	"onetime":                             {".", "driver", "internal/ask", "internal/tell", "observe"},
	"quorumlock":                          {"driver", "internal/ask"},
	"internal/drivertest/membertest":      {"driver"},
	"rediscore":                           {"driver", "driver/mailbox", "internal/ask", "internal/holders", "internal/modes", "internal/whole", "rediscore/internal/form", "rediscore/internal/keys", "rediscore/internal/lua"},
	"rediscore/doctor":                    {"driver", "internal/ask", "internal/probe", "rediscore", "rediscore/internal/form", "rediscore/internal/keys"},
	"rediscore/internal/form":             {"driver", "internal/holders"},
	"rediscore/internal/keys":             {"driver"},
	"rediscore/internal/lua":              {"rediscore/internal/keys"},
	"rediscore/member":                    {"driver", "internal/holders", "rediscore", "rediscore/doctor", "rediscore/internal/form", "rediscore/internal/lua"},
	"rediscore/redisfence":                {"driver", "fence", "observe", "rediscore", "rediscore/internal/form", "rediscore/internal/keys", "rediscore/internal/lua"},
	"redislock":                           {"driver", "internal/storeurl", "rediscore", "rediscore/doctor"},
	"redislock/member":                    {"driver", "rediscore/member", "redislock"},
	"goredislock":                         {"driver", "rediscore", "rediscore/doctor"},
	"otellock":                            {".", "driver", "observe", "internal/tally"},
	"promlock":                            {".", "internal/tally"},
	"stores":                              {".", "driver", "httplock", "internal/storeurl", "memlock", "pglock", "quorumlock", "redislock", "redislock/member", "sqlitelock"},
	"wire":                                {"driver"},
	"internal/codes":                      {".", "fence", "onetime", "wire"},
	"internal/probe":                      {"driver"},
	"internal/problem":                    {"wire"},
	"internal/view":                       {".", "wire"},
	"pglock":                              {"driver", "driver/mailbox", "driver/rules", "internal/ask", "internal/holders", "internal/modes", "internal/probe", "internal/storeurl", "internal/whole"},
	"sqlitelock":                          {"driver", "driver/rules", "internal/holders", "internal/modes", "internal/probe", "internal/whole", "sqlitelock/internal/bell", "sqlitelock/internal/onefile"},
	"sqlitelock/internal/bell":            {"driver", "driver/mailbox", "sqlitelock/internal/onefile"},
	"sqlitelock/internal/onefile":         {"driver"},
	"systest":                             {},
	"systest/apitest":                     {},
	"systest/clienttest":                  {},
	"systest/fencetest":                   {},
	"systest/check":                       {".", "systest/model/lease"},
	"systest/fault":                       {"driver", "internal/hook"},
	"systest/minitest":                    {},
	"systest/model/lease":                 {},
	"systest/model/quorum":                {},
	"systest/modules":                     {},
	"systest/faults":                      {},
	"systest/oteltest":                    {},
	"systest/pgtest":                      {},
	"systest/net":                         {},
	"systest/nettest":                     {},
	"systest/quorumsim":                   {".", "driver", "internal/mem", "quorumlock"},
	"systest/sim":                         {".", "driver", "fence", "redislock"},
	"systest/report":                      {},
	"systest/soak":                        {},
	"systest/webtest":                     {},
	"systest/wiretest":                    {},
	"systest/traffic":                     {".", "driver", "fence", "fence/httpfence", "goredislock", "internal/testsvc", "redislock", "stores", "systest/check", "systest/fault", "systest/model/lease"},
	"httplock":                            {"driver", "driver/mailbox", "httplock/internal/form", "internal/ask", "wire"},
	"httplock/internal/form":              {"driver", "wire"},
	"httplock/server":                     {".", "driver", "httplock/server/caller", "httplock/server/internal/door", "httplock/server/internal/driverdoor", "httplock/server/internal/eventdoor", "httplock/server/internal/leasedoor", "httplock/server/internal/limit", "httplock/server/internal/lookdoor", "httplock/server/internal/oncedoor", "httplock/server/internal/peer", "httplock/server/internal/storedoor", "httplock/server/internal/streamdoor", "wire", "internal/problem"},
	"httplock/server/caller":              {"driver", "httplock/server/internal/strict"},
	"httplock/server/internal/door":       {".", "driver", "httplock/internal/form", "httplock/server/caller", "httplock/server/internal/limit", "httplock/server/internal/strict", "internal/ask", "wire", "internal/codes", "internal/problem", "internal/header"},
	"httplock/server/internal/driverdoor": {"driver", "httplock/internal/form", "httplock/server/caller", "httplock/server/internal/door", "httplock/server/internal/limit", "httplock/server/internal/peer"},
	"httplock/server/internal/eventdoor":  {"driver", "httplock/server/caller", "httplock/server/internal/door", "wire", "internal/header"},
	"httplock/server/internal/lease":      {".", "driver", "httplock/server/caller", "httplock/server/internal/door", "internal/ask", "internal/codes", "internal/modes", "internal/oncerecord", "internal/places", "internal/wait", "oncehttp", "wire", "internal/header", "httplock/server/internal/limit"},
	"httplock/server/internal/leasedoor":  {".", "driver", "httplock/server/caller", "httplock/server/internal/door", "httplock/server/internal/lease", "internal/ask", "oncehttp", "wire", "httplock/server/internal/limit"},
	"httplock/server/internal/lookdoor":   {"driver", "httplock/server/caller", "httplock/server/internal/door", "httplock/server/internal/lease", "internal/ask", "internal/places", "internal/view", "wire", "internal/header"},
	"httplock/server/internal/oncedoor":   {".", "driver", "httplock/server/caller", "httplock/server/internal/door", "httplock/server/internal/lease", "httplock/server/internal/limit", "internal/ask", "internal/oncerecord", "internal/view", "observe", "oncehttp", "onetime", "wire"},
	"httplock/server/internal/streamdoor": {".", "driver", "httplock/server/caller", "httplock/server/internal/door", "httplock/server/internal/lease", "httplock/server/internal/peer", "internal/codes", "wire"},
	"httplock/server/internal/storedoor":  {"driver", "httplock/server/caller", "httplock/server/internal/door", "internal/ask", "wire"},
	"httplock/server/internal/strict":     {},
	"httplock/server/internal/limit":      {"driver", "httplock/server/caller"},
	"httplock/server/internal/peer":       {},
	"internal/archtest":                   {},
	"scripts/english":                     {},
	"internal/ask":                        {"driver"},
	"internal/codeblock":                  {},
	"internal/contexttest":                {},
	"internal/drivertest":                 {"driver"},
	"internal/exchange":                   {},
	"internal/clock":                      {},
	"internal/self":                       {"driver"},
	"internal/inside":                     {"driver"},
	"internal/faultproxy":                 {},
	"internal/mem":                        {"driver", "driver/mailbox", "driver/rules", "internal/whole"},
	"internal/whole":                      {"driver"},
	"internal/faketest":                   {},
	"internal/hook":                       {"driver"},
	"internal/onetimetest":                {".", "driver", "onetime"},
	"internal/oncerecord":                 {},
	"internal/header":                     {},
	"internal/places":                     {"driver", "internal/ask", "internal/holders", "internal/schedule"},
	"internal/turns":                      {"internal/wait"},
	"internal/wait":                       {"driver", "internal/ask", "internal/places"},
	"internal/schedule":                   {"driver"},
	"internal/storeurl":                   {},
	"internal/tell":                       {"observe"},
	"internal/testsvc":                    {},

	"examples":           {},
	"examples/dashboard": {"dashboard", "driver", "stores"},
	"examples/toyengine": {"driver", "driver/mailbox", "driver/rules"},
	"examples/recipes":   {},
	"examples/seats":     {".", "fence", "fence/sqlfence", "stores"},

	"cmd/holdfast":                    {"cmd/holdfast/internal/cli"},
	"cmd/holdfast/internal/bench":     {".", "driver"},
	"cmd/holdfast/internal/cli":       {".", "cmd/holdfast/internal/bench", "cmd/holdfast/internal/demo", "cmd/holdfast/internal/exit", "cmd/holdfast/internal/keeper", "cmd/holdfast/internal/notify", "cmd/holdfast/internal/runner", "cmd/holdfast/internal/serve", "cmd/holdfast/internal/show", "cmd/holdfast/internal/store", "cmd/holdfast/internal/supervise", "driver", "httplock/server", "httplock/server/caller", "internal/codes", "internal/storeurl", "internal/view", "onetime", "stores", "wire"},
	"cmd/holdfast/internal/demo":      {".", "driver"},
	"cmd/holdfast/internal/exit":      {"internal/codes"},
	"cmd/holdfast/internal/keeper":    {".", "cmd/holdfast/internal/exit", "cmd/holdfast/internal/store", "cmd/holdfast/internal/supervise"},
	"cmd/holdfast/internal/manual":    {"cmd/holdfast/internal/cli"},
	"cmd/holdfast/internal/notify":    {},
	"cmd/holdfast/internal/runner":    {".", "cmd/holdfast/internal/exit", "cmd/holdfast/internal/keeper", "cmd/holdfast/internal/notify", "cmd/holdfast/internal/show", "cmd/holdfast/internal/supervise", "driver", "driver/rules", "wire"},
	"cmd/holdfast/internal/serve":     {"dashboard", "driver", "httplock/server", "httplock/server/caller", "internal/problem", "internal/tally", "observe", "wire"},
	"cmd/holdfast/internal/show":      {".", "cmd/holdfast/internal/supervise", "driver", "internal/view"},
	"cmd/holdfast/internal/store":     {"driver", "internal/storeurl", "quorumlock", "sqlitelock", "stores"},
	"cmd/holdfast/internal/supervise": {},
}

// A room is who may use something that not everybody shall pay for.
type room struct {
	importers []string // those that import it
	users     []string // those that need it through others only
}

// rooms lists what a program does not get unless it asks for it: a program that
// takes a lock in Redis pays for neither an HTTP server nor SQL, and what
// engines and guards share stands on the driver alone. A name that ends in
// "..." stands for all packages that begin with it.
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
}

// A pkg is what go list says of a package.
type pkg struct {
	ImportPath, Doc                    string
	Imports, TestImports, XTestImports []string
	Deps                               []string // of Imports, and of all that those import
	Module                             struct{ Path string }
}

func TestImports(t *testing.T) {
	for _, p := range list(t) {
		name := relative(p.ImportPath)
		allowed, ok := mayImport[name]
		if !ok {
			t.Errorf("%s is not in mayImport: say there what it may import", name)
		}
		for _, imp := range p.Imports {
			if ours(imp) && relative(imp) != "lockinfo" && !slices.Contains(allowed, relative(imp)) {
				t.Errorf("%s imports %s", name, relative(imp))
			}
		}
		for _, unused := range allowed {
			if !slices.ContainsFunc(p.Imports, func(imp string) bool { return ours(imp) && relative(imp) == unused }) {
				t.Errorf("%s does not import %s: take it out of mayImport", name, unused)
			}
		}
	}
}

func TestPackagesNeedNoMore(t *testing.T) {
	pkgs := list(t)
	for what, room := range rooms {
		for _, p := range pkgs {
			name := relative(p.ImportPath)
			importer := covers(room.importers, name)
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
