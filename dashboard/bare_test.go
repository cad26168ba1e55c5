package dashboard

import "testing"

// TestBareScript checks that bareScript removes comments and indentation, and keeps the code.
func TestBareScript(t *testing.T) {
	for script, want := range map[string]string{
		"const a = { b: 1 }; // it's\nreturn a;\n":        "const a = { b: 1 };\nreturn a;\n",
		"f({ // why\n  a, // c // d\n});\n":               "f({\na,\n});\n",
		"  // a\n\n\n  b = 2;\n\t// c\n":                  "b = 2;\n",
		"f('c // d', \"http://e\", /[/ = ]\\/ = \"/g);\n": "f('c // d', \"http://e\", /[/ = ]\\/ = \"/g);\n",
		"html`<a b = ${c} // f</a>`;\n":                   "html`<a b = ${c} // f</a>`;\n",
		"`a\\n\\treturn nil // the work\\n}`;\n":          "`a\\n\\treturn nil // the work\\n}`;\n",
	} {
		if got := string(bareScript([]byte(script))); got != want {
			t.Errorf("%q: %q, want %q", script, got, want)
		}
	}
}
