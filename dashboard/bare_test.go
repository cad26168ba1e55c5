package dashboard

import "testing"

// TestBareScript: texts and regular expressions stay as they are, and what is left of the code is
// the same code.
func TestBareScript(t *testing.T) {
	for script, want := range map[string]string{
		"const a = { b: 1 }; // it's\nreturn a;\n":                "const a={b:1};\nreturn a;\n",
		"x = a + +b - -c / d / e;\n":                              "x=a + +b - -c / d / e;\n",
		"f(\"a = b\", 'c // d', \"\\\"  =\");\n":                  "f(\"a = b\",'c // d',\"\\\"  =\");\n",
		"s.replace(/[/ = ]\\/ = \"/g, x);\n":                      "s.replace(/[/ = ]\\/ = \"/g,x);\n",
		"return / = /.test(a) ? b : c;\n":                         "return / = /.test(a)?b:c;\n",
		"html`<a b = ${c ? `d = ${ e } ` : \"}\"} > // f</a>`;\n": "html`<a b = ${c?`d = ${e} `:\"}\"} > // f</a>`;\n",
		"  /* no = comment */ a = 1;\n\n\n  b = 2;\n":             "/* no=comment */ a=1;\nb=2;\n",
		"typeof a === \"b\" && c in d || e instanceof F;\n":       "typeof a===\"b\"&&c in d||e instanceof F;\n",
		"a = `\\`${\"`\"}`;\n":                                    "a=`\\`${\"`\"}`;\n",
	} {
		if got := string(bareScript([]byte(script))); got != want {
			t.Errorf("%q: %q, want %q", script, got, want)
		}
	}
}
