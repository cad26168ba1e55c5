//go:build unix

package clienttest

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/codeblock"
)

// TestPageShowsTheClients checks that the code in docs/clients.md is in the clients.
func TestPageShowsTheClients(t *testing.T) {
	const page = "../../docs/clients.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"python": "python/holdfast.py", "js": "javascript/holdfast.mjs", "java": "java/Holdfast.java", "sh": "shell/with-lock.sh", "cfml": "cfml/Holdfast.cfc", "sql": "python/guard.py"}
	blocks, problems := codeblock.Find(page, string(text))
	for _, p := range problems {
		t.Error(p)
	}
	for _, b := range blocks {
		if b.CheckedBy != t.Name() {
			continue
		}
		file := files[b.Kind]
		client, err := os.ReadFile(tree + file)
		if err != nil {
			t.Fatalf("%s: %v", b.At(), err)
		}
		if !strings.Contains(bare(string(client)), bare(b.Text)) {
			t.Errorf("%s: is not in %s", b.At(), file)
		}
		delete(files, b.Kind)
	}
	for kind := range files {
		t.Errorf("the page shows nothing in %s", kind)
	}
}

// bare returns a text without indentation and comment markers.
func bare(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimLeft(strings.TrimSpace(line), "*/# "))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// TestGuard checks that the database of the example refuses a late holder.
func TestGuard(t *testing.T) {
	out, err := exec.Command("python3", "-B", tree+"python/guard.py").CombinedOutput()
	want := "ada True\nbob is refused: seat 12A: a later holder than 7 was here\n('ada', 8)\n"
	if err != nil || string(out) != want {
		t.Errorf("%v: %s\nwant %s", err, out, want)
	}
}

var (
	// cfmlAsk matches a call of ask or turnAt: the method, the path with its suffix, and the
	// fields.
	cfmlAsk   = regexp.MustCompile(`(?:ask\( "(\w+)"|turnAt\()[ ,]+(?:"([^"]*)"|path)(?: & "([^"]*)")?, (\{[^}]*\}|body)`)
	cfmlField = regexp.MustCompile(`"(\w+)":|body\[ "(\w+)" \]`)
	cfmlText  = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*|"[^"\n]*"`)
)

// TestCFML checks the client in CFML, which cannot be run here: its brackets match, and
// openapi.json has each of its requests, with each field.
func TestCFML(t *testing.T) {
	files, err := filepath.Glob(tree + "cfml/*.cfc")
	if err != nil || len(files) != 2 {
		t.Fatalf("%q, %v", files, err)
	}
	described, asked := describedFields(t), 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		for _, m := range cfmlAsk.FindAllStringSubmatch(text, -1) {
			path, fields := m[2]+m[3], cfmlField.FindAllStringSubmatch(m[4], -1)
			if m[2] == "" {
				path = "/v1/once/{key}" + m[3]
			}
			if m[1] == "" { // the fields that turnAt adds
				fields = append(fields, cfmlField.FindAllStringSubmatch(text, -1)...)
				fields = slices.DeleteFunc(fields, func(f []string) bool { return f[2] == "" && !strings.Contains(m[4], `"`+f[1]+`"`) })
			}
			known, ok := described[cmp.Or(m[1], "POST")+" "+path]
			if !ok || len(fields) == 0 && m[4] != "body" {
				t.Errorf("%s asks for %s %s with %s, which openapi.json does not have", file, m[1], path, m[4])
			}
			for _, f := range fields {
				if !known[f[1]+f[2]] {
					t.Errorf("%s: %s has no field %q", file, path, f[1]+f[2])
				}
			}
			if m[4] != "body" {
				asked++
			}
		}
		checkBrackets(t, file, text)
	}
	if asked < 6 {
		t.Errorf("the client makes %d requests", asked)
	}
}

// describedFields returns the fields of each described request, by method and path.
func describedFields(t *testing.T) map[string]map[string]bool {
	t.Helper()
	type schema struct {
		Ref        string `json:"$ref"`
		Properties map[string]any
		AllOf      []schema `json:"allOf"`
		OneOf      []schema `json:"oneOf"`
		AnyOf      []schema `json:"anyOf"`
	}
	var description struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct{ Schema schema }
			}
		}
		Components struct{ Schemas map[string]schema }
	}
	text, err := os.ReadFile("../../httplock/server/openapi.json")
	if err == nil {
		err = json.Unmarshal(text, &description)
	}
	if err != nil {
		t.Fatal(err)
	}
	var add func(into map[string]bool, s schema)
	add = func(into map[string]bool, s schema) {
		if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
			add(into, description.Components.Schemas[name])
		}
		for field := range s.Properties {
			into[field] = true
		}
		for _, part := range slices.Concat(s.AllOf, s.OneOf, s.AnyOf) {
			add(into, part)
		}
	}
	all := map[string]map[string]bool{}
	for path, methods := range description.Paths {
		for method, operation := range methods {
			fields := map[string]bool{}
			add(fields, operation.RequestBody.Content["application/json"].Schema)
			all[strings.ToUpper(method)+" "+path] = fields
		}
	}
	return all
}

// checkBrackets checks that each bracket is closed.
func checkBrackets(t *testing.T, file, text string) {
	t.Helper()
	var open []rune
	for _, c := range cfmlText.ReplaceAllString(text, "") {
		switch i := strings.IndexRune("({[", c); {
		case i >= 0:
			open = append(open, rune(")}]"[i]))
		case strings.ContainsRune(")}]", c):
			if len(open) == 0 || open[len(open)-1] != c {
				t.Fatalf("%s: %q closes nothing", file, c)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t.Errorf("%s: %q is missing", file, open)
	}
}
