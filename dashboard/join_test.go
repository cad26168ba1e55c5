package dashboard

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestJoin checks that the scripts of the page are joined to one that a browser can parse, without
// imports and exports.
func TestJoin(t *testing.T) {
	script := pack()["/main.js"].plain.body
	file := filepath.Join(t.TempDir(), "main.mjs")
	if err := os.WriteFile(file, script, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "node", "--check", file).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if found := newForms().unknown.FindAll(script, -1); len(found) > 0 {
		t.Errorf("imports and exports that are left: %q", found)
	}
}

// TestJoinMeans checks that joined scripts do the same as separate ones.
func TestJoinMeans(t *testing.T) {
	scripts := map[string]string{
		"main.js": "import { say, three } from \"./a/say.js\";\nimport { twice } from \"./lib.js\";\n" +
			"import {\nsame,\nother,\n} from \"./b.js\";\nconst own = 1;\nsay(own, three, same, other, twice(4), new (class { x = 5; })().x);\n",
		"a/say.js": "import { same } from \"../b.js\";\nconst mine = 2;\nexport async function say(...all) {\nconsole.log(same, mine, ...all);\n}\nexport const three = 3;\n",
		"b.js":     "const its = 7;\nexport const same = \"b\" + its;\nexport class other {}\nother.toString = () => \"other\";\n",
		"lib.js":   "import { double } from \"./vendor/double.js\";\nexport const { twice, unused } = double;\n",

		"vendor/double.js": "export const double = (() => {\nvar n=2,own=0;return{twice:t=>n*t,unused:own};\n})();\n",
	}
	joined, err := join(asBytes(scripts), "main.js")
	if err != nil {
		t.Fatal(err)
	}
	alone := run(t, scripts)
	if together := run(t, map[string]string{"main.js": string(joined)}); together != alone || !strings.HasPrefix(alone, "b7 2 1 3 b7") {
		t.Errorf("together %q, alone %q", together, alone)
	}
}

// TestJoinRefuses checks that join refuses unknown forms, missing scripts and missing names.
func TestJoinRefuses(t *testing.T) {
	for want, scripts := range map[string]map[string]string{
		"there is no such script": {"main.js": "import { a } from \"./a.js\";\n"},
		"does not export b":       {"main.js": "import { b } from \"./a.js\";\n", "a.js": "export const a = 1;\n"},
		"no script imports it":    {"main.js": "\n", "a.js": "export const a = 1;\n"},
		"through others":          {"main.js": "import { a } from \"./a.js\";\n", "a.js": "import { b } from \"./b.js\";\nexport const a = b;\n", "b.js": "import { a } from \"./a.js\";\nexport const b = a;\n"},
		"export let a":            {"main.js": "import { a } from \"./a.js\";\n", "a.js": "export let a = 1;\n"},
		"export *":                {"main.js": "import { a } from \"./a.js\";\n", "a.js": "export * from \"./b.js\";\n", "b.js": "export const a = 1;\n"},
		"export default":          {"main.js": "import { a } from \"./a.js\";\n", "a.js": "export default 1;\n"},
		"import * as":             {"main.js": "import * as a from \"./a.js\";\n", "a.js": "export const a = 1;\n"},
		"import(":                 {"main.js": "const a = await import(\"./a.js\");\n", "a.js": "export const a = 1;\n"},
		"import.meta":             {"main.js": "const a = import.meta.url;\n"},
		"does not export a as b":  {"main.js": "import { a as b } from \"./a.js\";\n", "a.js": "export const a = 1;\n"},
		"export { a }":            {"main.js": "import { a } from \"./a.js\";\n", "a.js": "const a = 1;\nexport { a };\n"},
		"import a":                {"main.js": "import a from \"./a.js\";\n", "a.js": "export const a = 1;\n"},
	} {
		joined, err := join(asBytes(scripts), "main.js")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v\n%s", want, err, joined)
		}
	}
}

func asBytes(scripts map[string]string) map[string][]byte {
	all := map[string][]byte{}
	for name, text := range scripts {
		all[name] = []byte(text)
	}
	return all
}

// run runs main.js with node, and returns what it prints.
func run(t *testing.T, scripts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("package.json", `{"type": "module"}`)
	for name, text := range scripts {
		write(name, text)
	}
	out, err := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "main.js")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// TestNamesHideNothing checks that no top-level name of a script hides a name of the browser. The
// scripts are joined, so a top-level name of one script is visible in all of them.
func TestNamesHideNothing(t *testing.T) {
	var scripts []byte // with the indentation, which the joined script has lost
	err := fs.WalkDir(web, "web", func(name string, _ fs.DirEntry, err error) error {
		if filepath.Ext(name) != ".js" || err != nil {
			return err
		}
		script, err := web.ReadFile(name)
		scripts = append(scripts, script...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, global := range strings.Fields(`AbortController AbortSignal Array BigInt Boolean Date Element Error Event EventSource
		FormData Infinity Intl JSON Map Math Node Number Object Promise RegExp Request Response Set String URL URLSearchParams
		addEventListener alert clearInterval clearTimeout close closed confirm console crypto decodeURIComponent document
		encodeURIComponent event fetch find focus frames getComputedStyle getSelection globalThis history innerHeight innerWidth
		isFinite isNaN length localStorage location matchMedia name navigator open opener origin parent parseFloat parseInt
		performance postMessage print prompt queueMicrotask removeEventListener requestAnimationFrame screen scroll scrollBy
		scrollTo scrollX scrollY self sessionStorage setInterval setTimeout status stop structuredClone top undefined window`) {
		named := `(?:G\b|\{[^}=]*\bG\b[^}=]*\} =|.*, G = ).*` // alone, in an object pattern, or after others
		top := `(?m)^(?:export )?(?:async )?(?:function|class|const|let) ` + strings.ReplaceAll(named, "G", global)
		if at := regexp.MustCompile(top).Find(scripts); at != nil {
			t.Errorf("a browser has something else under the name %s: %s", global, at)
		}
	}
}
