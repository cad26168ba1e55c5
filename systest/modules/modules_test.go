package modules

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const (
	ours    = "github.com/holdfast-locks/holdfast"
	version = "v0.1.0" // as the go.mod files require each other
	tree    = "../.."
	page    = "docs/internals/modules.md"
	heading = "| a program with | downloads and links |\n|---|---|\n"
)

// released are the modules that users get; examples and systest are not.
var released = []string{ours, ours + "/redislock", ours + "/goredislock", ours + "/pglock", ours + "/sqlitelock", ours + "/stores", ours + "/promlock", ours + "/otellock", ours + "/cmd/holdfast"}

// A consumer is a program that imports packages of ours, or that has our command as a tool.
type consumer struct {
	name     string // in the table
	module   string // the module that it requires
	packages []string
}

var consumers = []consumer{
	{"`holdfast`", ours, []string{ours}},
	{"`holdfast`, `memlock`, `quorumlock`, `rediscore`", ours, []string{ours, ours + "/memlock", ours + "/quorumlock", ours + "/rediscore/..."}},
	{"`holdfast`, `fence`, `httpfence`, `sqlfence`, `observe`, `oncehttp`, `onetime`, `wire`", ours, []string{ours, ours + "/fence/...", ours + "/observe/...", ours + "/oncehttp", ours + "/onetime", ours + "/wire/..."}},
	{"`holdfast`, and `holdfasttest` in its tests", ours, []string{ours, ours + "/holdfasttest"}},
	{"`holdfast`, `redislock`", ours + "/redislock", []string{ours, ours + "/redislock"}},
	{"`holdfast`, `goredislock`", ours + "/goredislock", []string{ours, ours + "/goredislock"}},
	{"`holdfast`, `pglock`", ours + "/pglock", []string{ours, ours + "/pglock"}},
	{"`holdfast`, `sqlitelock`", ours + "/sqlitelock", []string{ours, ours + "/sqlitelock"}},
	{"`holdfast`, `stores`", ours + "/stores", []string{ours, ours + "/stores"}},
	{"`holdfast`, `promlock`", ours + "/promlock", []string{ours, ours + "/promlock"}},
	{"`holdfast`, `otellock`", ours + "/otellock", []string{ours, ours + "/otellock"}},
	{"`cmd/holdfast`", ours + "/cmd/holdfast", []string{ours + "/cmd/holdfast"}},
}

// linux is the platform of the table.
var linux = []string{"GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0"}

// TestConsumers checks the table in docs/internals/modules.md. It also checks that programs
// download the versions with which the tests of the workspace run.
func TestConsumers(t *testing.T) {
	table := readTable(t)
	env := environment(t, pack(t))
	for _, c := range consumers {
		got := c.row(t, env)
		if !slices.Contains(table, got) {
			t.Errorf("%s lacks the row\n%s", page, got)
		}
	}
	if len(table) != len(consumers) {
		t.Errorf("%s has %d rows, and there are %d consumers", page, len(table), len(consumers))
	}
}

// readTable returns the rows of the page's table.
func readTable(t *testing.T) (rows []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(tree, page))
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), heading)
	if !found {
		t.Fatalf("%s has no table that begins with\n%s", page, heading)
	}
	for line := range strings.Lines(after) {
		if !strings.HasPrefix(line, "| ") {
			break
		}
		rows = append(rows, strings.TrimSpace(line))
	}
	return rows
}

// pack writes the released modules, as they are in the tree, into a directory with the layout of a
// GOPROXY. It returns the directory's URL.
func pack(t *testing.T) string {
	t.Helper()
	proxy := t.TempDir()
	for _, path := range released {
		dir := filepath.Join(tree, strings.TrimPrefix(path, ours))
		at := filepath.Join(proxy, path, "@v")
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(at, "list"), version+"\n")
		write(t, filepath.Join(at, version+".info"), `{"Version":"`+version+`"}`)
		write(t, filepath.Join(at, version+".mod"), string(mod))
		f, err := os.Create(filepath.Join(at, version+".zip"))
		if err != nil {
			t.Fatal(err)
		}
		if err := zip.CreateFromDir(f, module.Version{Path: path, Version: version}, dir); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return "file://" + proxy
}

// environment returns the environment of a go command that gets our modules only from proxy, and
// other modules from the module cache or from the GOPROXY of the tests. Its own module cache is
// empty.
func environment(t *testing.T, proxy string) []string {
	t.Helper()
	known := "file://" + filepath.Join(run(t, ".", nil, "env", "GOMODCACHE"), "cache", "download")
	return slices.Concat(os.Environ(), linux, []string{
		"GOWORK=off", "GOFLAGS=-mod=mod -modcacherw", "GOMODCACHE=" + t.TempDir(),
		"GOPROXY=" + strings.Join([]string{proxy, known, run(t, ".", nil, "env", "GOPROXY")}, ","),
		"GOSUMDB=off", "GOPRIVATE=", "GONOPROXY=", "GONOSUMDB=", // our modules are not published
	})
}

// row creates the consumer in a new directory, and returns the table's row for it.
func (c consumer) row(t *testing.T, env []string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module consumer\n\ngo 1.26.0\n\nrequire "+c.module+" "+version+"\n")
	linked := c.linked(t, dir, env)
	got := downloaded(t, dir)
	if !slices.Equal(got, linked) {
		t.Errorf("%s downloads %s and links %s", c.name, got, linked)
	}
	// Users must get what is tested. And because the tests need the same modules, this test needs
	// no network.
	if tested := c.linked(t, tree, append(os.Environ(), linux...)); !slices.Equal(got, tested) {
		t.Errorf("%s downloads %s, and the tests run with %s: require that in go.mod", c.name, got, tested)
	}
	c.checkList(t, dir, env, got)
	return "| " + c.name + " | " + names(got) + " |"
}

// families are prefixes of module names. A consumer may have such a module in its module list only
// if it links one with the same prefix. No consumer gets the SDK of OpenTelemetry from us.
var families = []string{
	"github.com/getkin/", "github.com/jackc/",
	"github.com/prometheus/", "github.com/redis/go-redis/", "github.com/redis/rueidis", "github.com/spf13/",
	"go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/", "go.uber.org/goleak", "modernc.org/",
}

// checkList checks the modules that "go list -m all" prints in dir, as a scanner reports them: it
// must have no module that only other consumers need.
func (c consumer) checkList(t *testing.T, dir string, env []string, linked []string) {
	t.Helper()
	listed := others(strings.Fields(run(t, dir, env, "list", "-m", "-f", "{{if not .Main}}{{.Path}}@{{.Version}}{{end}}", "all")))
	for _, family := range families {
		has := func(m string) bool { return strings.HasPrefix(m, family) }
		if slices.ContainsFunc(listed, has) && !slices.ContainsFunc(linked, has) {
			t.Errorf("%s: go list -m all names %s: %s", c.name, family, listed)
		}
	}
	if strings.Contains(c.name, "goredislock") && !slices.Equal(listed, linked) {
		t.Errorf("%s: go list -m all names %s, and more than go-redis needs: %s", c.name, listed, linked)
	}
}

// linked returns the modules, except ours and with versions, that contain packages the consumer's
// packages need, as resolved in dir.
func (c consumer) linked(t *testing.T, dir string, env []string) []string {
	t.Helper()
	list := run(t, dir, env, append([]string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}@{{.Version}}{{end}}"}, c.packages...)...)
	return others(strings.Fields(list))
}

// downloaded returns the modules, except ours and with versions, whose content has a sum in the
// go.sum of dir, not only their go.mod.
func downloaded(t *testing.T, dir string) (all []string) {
	t.Helper()
	sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(sums)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && !strings.HasSuffix(fields[1], "/go.mod") {
			all = append(all, fields[0]+"@"+fields[1])
		}
	}
	return others(all)
}

// others returns the modules that are not ours, without duplicates.
func others(modules []string) []string {
	slices.Sort(modules)
	return slices.DeleteFunc(slices.Compact(modules), func(m string) bool {
		return strings.HasPrefix(m, ours+"@") || strings.HasPrefix(m, ours+"/")
	})
}

// names lists modules as the table does, without versions.
func names(modules []string) string {
	if len(modules) == 0 {
		return "none"
	}
	paths := make([]string, len(modules))
	for i, m := range modules {
		paths[i], _, _ = strings.Cut(m, "@")
	}
	return "`" + strings.Join(paths, "`, `") + "`"
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run runs the go command in dir and returns its output.
func run(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Logf("%s", exit.Stderr)
		}
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}
