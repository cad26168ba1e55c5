package dashboard

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestJoin: the scripts of the page are one, which a browser can read, and whose parts have what
// they import.
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

// TestJoinMeans: a script that is joined does what it does by itself.
func TestJoinMeans(t *testing.T) {
	scripts := map[string]string{
		"main.js": "import { say, three as tres } from \"./a/say.js\";\nimport { twice } from \"./lib.js\";\n" +
			"import {\nsame,\nother as same2,\n} from \"./b.js\";\nconst own = 1;\nsay(own, tres, same, same2, twice(4), new (class { x = 5; })().x);\n",
		"a/say.js": "import { same as a } from \"../b.js\";\nconst own = 2;\nexport async function say(...all) {\nconsole.log(a, own, ...all);\n}\nexport const three = 3;\n",
		"b.js":     "const own = 7;\nexport const same = \"b\" + own;\nexport class other {}\nother.toString = () => \"other\";\n",
		"lib.js":   "import Double from \"./vendor/double.js\";\nexport { Double as twice } from \"./vendor/double.js\";\nexport const unused = Double;\n",
	}
	libraries := map[string]string{
		"vendor/double.js": `import{by as t}from"./by.js";export{by as $,by}from"./by.js";const n=n=>t*n;export{n as Double};export default function(t){return n(t)}` + "\n",
		"vendor/by.js":     "const a=2;export{a as by};\n",
	}
	all := maps.Clone(scripts)
	maps.Copy(all, libraries)
	joined, err := join(asBytes(all), "main.js")
	if err != nil {
		t.Fatal(err)
	}
	alone := run(t, libraries, scripts)
	if together := run(t, map[string]string{"main.js": string(joined)}); together != alone || !strings.HasPrefix(alone, "b7 2 1 3 b7") {
		t.Errorf("together %q, alone %q", together, alone)
	}
}

// TestJoinRefuses what it does not understand, and what is not there.
func TestJoinRefuses(t *testing.T) {
	for want, scripts := range map[string]map[string]string{
		"there is no such script": {"main.js": "import { a } from \"./a.js\";\n"},
		"does not export b":       {"main.js": "import { b } from \"./a.js\";\n", "a.js": "export const a = 1;\n"},
		"no script imports it":    {"main.js": "\n", "a.js": "export const a = 1;\n"},
		"through others":          {"main.js": "import { a } from \"./a.js\";\n", "a.js": "import { b } from \"./b.js\";\nexport const a = b;\n", "b.js": "import { a } from \"./a.js\";\nexport const b = a;\n"},
		"export let a":            {"main.js": "import { a } from \"./a.js\";\n", "a.js": "export let a = 1;\n"},
		"export *":                {"main.js": "import { a } from \"./a.js\";\n", "a.js": "export * from \"./b.js\";\n", "b.js": "export const a = 1;\n"},
		"export default":          {"main.js": "import a from \"./a.js\";\n", "a.js": "export default 1;\n"},
		"import * as":             {"main.js": "import * as a from \"./a.js\";\n", "a.js": "export const a = 1;\n"},
		"import(":                 {"main.js": "const a = await import(\"./a.js\");\n", "a.js": "export const a = 1;\n"},
		"import.meta":             {"main.js": "const a = import.meta.url;\n"},
		"it uses the name":        {"main.js": "const $main = 1;\n"},
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

// run has node run main.js, and returns what it prints.
func run(t *testing.T, all ...map[string]string) string {
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
	for _, files := range all {
		for name, text := range files {
			write(name, text)
		}
	}
	out, err := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "main.js")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}
