package codeblock

import (
	"fmt"
	"strings"
	"testing"
)

// TestFind checks that Find returns the blocks of a page and its problems.
func TestFind(t *testing.T) {
	for _, c := range []struct{ name, page, want string }{
		{"fences", "# T\n\n```go\nx\n```\n\ntext\n\n```sh\ny\nz\n```\n", "4 go 'x\n'; 10 sh 'y\nz\n'"},
		{"in a list", "- item\n\n  ```sh\n  y\n  ```\n", "4 sh 'y\n'"},
		{"paragraph of a list", "- item\n\n    more of it\n", ""},
		{"a comment", "<!-- go\nvar x int\n-->\n", "2 hidden 'var x int\n'"},
		{"another comment", "<!-- gone\n-->\n<!-- not for readers -->\n", ""},
		{"a test of its own", "<!-- checked by TestX -->\n\n```text\na\n```\n\n```text\nb\n```\n", "4 text TestX 'a\n'; 8 text 'b\n'"},
		{"a hash in a block", "```sh\n# x\n    y\n```\n", "2 sh '# x\n    y\n'"},
		{"no kind", "```\nx\n```\n", "2  'x\n'; page:1: a block that does not say what it is"},
		{"no end", "```go\nx\n", "page:1: a block that does not end"},
		{"a comment that does not end", "<!-- go\nx\n", "page:1: a comment that does not end"},
		{"indented", "text\n\n    holdfast ls\n", "page:3: an indented block: fence it, and say what it is"},
		{"indented by a tab", "text\n\n\tholdfast ls\n", "page:3: an indented block: fence it, and say what it is"},
		{"indented after a list", "- item\n\ntext\n\n    holdfast ls\n", "page:5: an indented block: fence it, and say what it is"},
		{"a test for nothing", "<!-- checked by TestX -->\n\ntext\n", "page:3: a test is named for a block, and there is none"},
	} {
		blocks, problems := Find("page", c.page)
		var got []string
		for _, b := range blocks {
			by := ""
			if b.CheckedBy != "" {
				by = " " + b.CheckedBy
			}
			got = append(got, strings.TrimPrefix(b.At(), "page:")+" "+b.Kind+by+" '"+b.Text+"'")
		}
		for _, err := range problems {
			got = append(got, err.Error())
		}
		if text := strings.Join(got, "; "); text != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, text, c.want)
		}
	}
}

// TestCompile checks which blocks compile, and which do not.
func TestCompile(t *testing.T) {
	cases := []struct{ name, page, want string }{
		{"a program", "```go\npackage main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println() }\n```\n", ""},
		{"two programs", "```go\npackage main\n\nfunc main() {}\n```\n```go\npackage main\n\nfunc main() {}\n```\n", ""},
		{"declarations", "```go\nfunc f(d time.Duration) string { return d.String() }\n```\n```go\nvar x = f(time.Second)\n```\n", ""},
		{"statements", "```go\nx := strings.ToUpper(\"x\")\nreturn errors.New(x)\n```\n", ""},
		{"statements go on", "```go\nx := 1\n```\n```go\nx, y := 2, x\nfmt.Print(y)\n```\n", ""},
		{"what is left out", "```go\nfor range 3 {\n\t…\n}\nf := func() int { … }\n```\n", ""},
		{"what a comment declares", "```go\nsend(x)\n```\n\n<!-- go\nvar x string\nfunc send(string) {}\n-->\n", ""},
		{"it holds for each block", "```go\nr := 1\n```\n```go\nfmt.Print(r.Header)\n```\n\n<!-- go\nvar r *http.Request\n-->\n", ""},
		{"surroundings", "```go\n<-ctx.Done()\nfmt.Println(lease.Token())\n```\n", ""},
		{"a wrong program", "```go\npackage main\n\nfunc main() { fmt.Println() }\n```\n", "4: undefined: fmt"},
		{"an unknown name", "x\n\n```go\nclient.Lok(ctx, \"x\")\n```\n", "4: client.Lok undefined"},
		{"a wrong argument", "```go\nlease, err := client.Acquire(ctx, 3, nil)\n```\n", "2: cannot use 3"},
		{"an option that there is not", "```go\no := holdfast.AcquireOptions{TTl: 1}\n```\n", "2: unknown field TTl"},
		{"one result too few", "```go\nlease := client.Acquire(ctx, \"x\", nil)\n```\n", "2: assignment mismatch"},
		{"no code", "```go\nthis is not Go\n```\n", "2: expected"},
		{"a wrong comment", "<!-- go\nx := 1\n-->\n", "2: expected"},
		{"a name of another page", "```go\nvar y = z\n```\n", "2: undefined: z"},
	}
	var blocks []Block
	for i, c := range cases {
		name := fmt.Sprintf("page%d", i)
		found, problems := Find(name, c.page)
		if len(problems) > 0 {
			t.Errorf("%s: %v", c.name, problems)
		}
		blocks = append(blocks, found...)
	}
	got := map[string]string{}
	for _, err := range Compile("../..", blocks) {
		page, what, _ := strings.Cut(err.Error(), ":")
		got[page] += what
	}
	for i, c := range cases {
		all := got[fmt.Sprintf("page%d", i)]
		if c.want == "" && all != "" || !strings.Contains(all, c.want) {
			t.Errorf("%s: %q, want %q", c.name, all, c.want)
		}
	}
}
