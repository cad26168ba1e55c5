package archtest

import (
	"go/importer"
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
	"testing"
)

// handle is the only type of an open package that frozen packages may name.
const handle = root + "/driver.Engine"

// inLists matches a package in the lists of docs/internals/modules.md.
var inLists = regexp.MustCompile("(?m)^- `([a-z/]+)`")

// frozenAndOpen returns the paths of the packages in the two lists of docs/internals/modules.md.
func frozenAndOpen(t *testing.T) (frozen, open map[string]bool) {
	t.Helper()
	listed := func(heading string) map[string]bool {
		_, text, _ := strings.Cut(read(t, "docs/internals/modules.md"), "\n"+heading+"\n")
		text, _, _ = strings.Cut(text, "\n##")
		all := map[string]bool{}
		for _, m := range inLists.FindAllStringSubmatch(text, -1) {
			name := path.Join(root, m[1])
			if m[1] == "holdfast" {
				name = root
			}
			all[name] = true
		}
		if len(all) < 8 {
			t.Fatalf("docs/internals/modules.md: %d packages below %q", len(all), heading)
		}
		return all
	}
	return listed("### Frozen"), listed("### Open")
}

// TestFrozenNamesNothingOpen checks that no frozen package names a type that may change, and that
// the lists of docs/internals/modules.md contain each importable package once.
func TestFrozenNamesNothingOpen(t *testing.T) {
	frozen, open := frozenAndOpen(t)
	exports := exported(t)
	for name := range exports {
		private := strings.Contains(name+"/", "/internal/") || covers([]string{"cmd/...", "systest...", "examples...", "scripts/..."}, relative(name))
		if ours(name) && !private && frozen[name] == open[name] {
			t.Errorf("docs/internals/modules.md: %s is in both lists, or in none", relative(name))
		}
	}
	load := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, name := range slices.Sorted(maps.Keys(frozen)) {
		p, err := load.Import(name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, problem := range namesOpen(p, open) {
			t.Error(problem)
		}
	}
}

// TestFrozenTestCanFail checks that namesOpen finds a type in every possible place.
func TestFrozenTestCanFail(t *testing.T) {
	driver := types.NewPackage(root+"/driver", "driver")
	named := func(p *types.Package, name string, under types.Type) *types.Named {
		obj := types.NewTypeName(token.NoPos, p, name, nil)
		p.Scope().Insert(obj)
		return types.NewNamed(obj, under, nil)
	}
	loss, engine := named(driver, "Loss", types.NewStruct(nil, nil)), named(driver, "Engine", types.NewInterfaceType(nil, nil))
	signature := func(in types.Type) *types.Signature {
		return types.NewSignatureType(nil, nil, nil, types.NewTuple(types.NewParam(token.NoPos, nil, "", in)), nil, false)
	}
	field := func(name string, of types.Type, embedded bool) types.Type {
		return types.NewStruct([]*types.Var{types.NewField(token.NoPos, nil, name, of, embedded)}, nil)
	}
	for what, c := range map[string]struct {
		add  func(p *types.Package)
		want int
	}{
		"a function":         {func(p *types.Package) { p.Scope().Insert(types.NewFunc(0, p, "F", signature(types.NewSlice(loss)))) }, 1},
		"the handle":         {func(p *types.Package) { p.Scope().Insert(types.NewFunc(0, p, "F", signature(engine))) }, 0},
		"not exported":       {func(p *types.Package) { p.Scope().Insert(types.NewFunc(0, p, "f", signature(loss))) }, 0},
		"a variable":         {func(p *types.Package) { p.Scope().Insert(types.NewVar(0, p, "V", types.NewPointer(loss))) }, 1},
		"a field":            {func(p *types.Package) { named(p, "T", field("F", types.NewMap(types.Typ[types.String], loss), false)) }, 1},
		"a hidden field":     {func(p *types.Package) { named(p, "T", field("f", loss, false)) }, 0},
		"an embedded type":   {func(p *types.Package) { named(p, "T", field("Loss", loss, true)) }, 1},
		"a hidden embedding": {func(p *types.Package) { named(p, "T", field("hidden", loss, true)) }, 0},
		"an alias":           {func(p *types.Package) { p.Scope().Insert(types.NewTypeName(0, p, "A", loss)) }, 1},
		"an alias with a name": {func(p *types.Package) {
			obj := types.NewTypeName(0, p, "A", nil)
			types.NewAlias(obj, loss)
			p.Scope().Insert(obj)
		}, 1},
		"a method": {func(p *types.Package) {
			on := named(p, "T", types.NewStruct(nil, nil))
			recv := types.NewParam(0, p, "t", on)
			on.AddMethod(types.NewFunc(0, p, "M", types.NewSignatureType(recv, nil, nil, nil, types.NewTuple(types.NewParam(0, nil, "", types.NewChan(types.SendRecv, loss))), false)))
		}, 1},
		"an interface": {func(p *types.Package) {
			named(p, "I", types.NewInterfaceType([]*types.Func{types.NewFunc(0, p, "M", signature(loss))}, nil).Complete())
		}, 1},
	} {
		p := types.NewPackage(root+"/frozen", "frozen")
		c.add(p)
		if got := namesOpen(p, map[string]bool{driver.Path(): true}); len(got) != c.want {
			t.Errorf("%s: %q, want %d", what, got, c.want)
		}
	}
}

// namesOpen returns a problem for each type of an open package that an exported name uses.
func namesOpen(p *types.Package, open map[string]bool) (problems []string) {
	for _, name := range p.Scope().Names() {
		obj := p.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		s := &surface{open: open, seen: map[types.Type]bool{}}
		defined, isType := obj.(*types.TypeName)
		if named, ok := obj.Type().(*types.Named); isType && ok && !defined.IsAlias() {
			s.walk(named.Underlying())
			for m := range named.Methods() {
				if m.Exported() {
					s.walk(m.Type())
				}
			}
		} else {
			s.walk(obj.Type())
		}
		for _, of := range slices.Compact(slices.Sorted(slices.Values(s.found))) {
			problems = append(problems, relative(p.Path())+"."+name+" names "+of+" of a package that stays open")
		}
	}
	return problems
}

// A surface collects the open types that users of a type see.
type surface struct {
	open  map[string]bool
	seen  map[types.Type]bool
	found []string
}

// name records a type if its package is open.
func (s *surface) name(obj *types.TypeName) {
	if obj.Pkg() != nil && s.open[obj.Pkg().Path()] && obj.Pkg().Path()+"."+obj.Name() != handle {
		s.found = append(s.found, obj.Pkg().Name()+"."+obj.Name())
	}
}

func (s *surface) walk(t types.Type) {
	if t == nil || s.seen[t] {
		return
	}
	s.seen[t] = true
	switch t := t.(type) {
	case *types.Alias:
		s.name(t.Obj())
		s.walk(t.Rhs())
	case *types.Named:
		s.name(t.Obj())
		for arg := range t.TypeArgs().Types() {
			s.walk(arg)
		}
	case *types.TypeParam:
		s.walk(t.Constraint())
	case *types.Map:
		s.walk(t.Key())
		s.walk(t.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		s.walk(t.Elem())
	case *types.Tuple:
		for v := range t.Variables() {
			s.walk(v.Type())
		}
	case *types.Signature:
		for p := range t.TypeParams().TypeParams() {
			s.walk(p)
		}
		s.walk(t.Params())
		s.walk(t.Results())
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				s.walk(f.Type())
			}
		}
	case *types.Interface:
		for e := range t.EmbeddedTypes() {
			s.walk(e)
		}
		for m := range t.ExplicitMethods() {
			if m.Exported() {
				s.walk(m.Type())
			}
		}
	case *types.Union:
		for term := range t.Terms() {
			s.walk(term.Type())
		}
	}
}

// exported returns the export data file of each package.
func exported(t *testing.T) map[string]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "work")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[name] = file
	}
	return all
}
