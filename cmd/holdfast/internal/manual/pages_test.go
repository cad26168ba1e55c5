//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"mvdan.cc/sh/v3/syntax"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/internal/codeblock"
)

// TestCommandsInPages checks that shell scripts, crontabs, units and configurations in the pages
// and in --help can be parsed, and that the built binary accepts their commands of holdfast, with
// the store out of reach.
func TestCommandsInPages(t *testing.T) {
	c := newChecker(t)
	for _, b := range blocksOfPages(t) {
		for _, err := range c.check(b) {
			t.Error(err)
		}
	}
	each(cli.Tree(), func(cmd *cobra.Command) {
		b := codeblock.Block{Page: cmd.CommandPath() + " --help", Kind: "bash", Text: cmd.Example}
		for _, err := range c.check(b) {
			t.Error(err)
		}
	})
	if ran := len(c.seen); ran < 80 {
		t.Errorf("%d commands were tried, want at least 80: are the pages read?", ran)
	}
}

// TestWrongCommandsAreFound shows that TestCommandsInPages can fail.
func TestWrongCommandsAreFound(t *testing.T) {
	c := newChecker(t)
	for _, wrong := range []struct{ kind, text, want string }{
		{"sh", "holdfast run --slot 3 crawl -- ./crawl.sh", "unknown flag"},
		{"sh", "holdfast rum deploy -- ./deploy.sh", "rum"},
		{"sh", "sudo holdfast doctor --make-system", "unknown flag"},
		{"sh", "for f in *; do holdfast extend 5 minutes; done", "minutes"},
		{"sh", "flock /var/lock/x holdfast run --slot 3 x -- y", "unknown flag"},
		{"sh", "if holdfast check deploy; then echo", "if"},
		{"sh", `eval "$(holdfast acquire deploy --pid)"`, "--pid"},
		{"sh", "holdfast run deploy -- sh -c 'holdfast extend'", "extend"},
		{"sh", "holdfast ls --store reddis://redis.internal:6379", "reddis"},
		{"sh", "holdfast run --ttl 5m deploy", "no command"},
		{"console", "$ holdfast wait\n$ holdfast ls\n", "wait"},
		{"crontab", `5 3 * * * holdfast run "report-$(date +%F)" -- ./report`, "%"},
		{"crontab", `5 3 * * holdfast ls`, "want"},
		{"crontab", `5 3 * * *  app  holdfast run --tll 5m x -- y`, "--tll"},
		{"ini", "[Service]\nExecStart=/usr/bin/holdfast elect --ttl=x scheduler -- /usr/bin/true", "--ttl"},
		{"usage", "holdfast watch [PREFIX] [--intervall D]", "--intervall"},
		{"usage", "holdfast watsch [PREFIX]", "watsch"},
		{"conf", "store = redis://redis.internal:6379\nprefx = house:", "prefx"},
	} {
		got := errors.Join(c.check(codeblock.Block{Page: "page", Kind: wrong.kind, Text: wrong.text + "\n"})...)
		if got == nil || !strings.Contains(got.Error(), wrong.want) {
			t.Errorf("%s %q: %v, want an error about %q", wrong.kind, wrong.text, got, wrong.want)
		}
	}
}

// TestCommandsInSentences checks that commands and flags in the sentences and tables of pages
// exist. Blocks have whole commands; these may be parts.
func TestCommandsInSentences(t *testing.T) {
	inline, found := regexp.MustCompile("`(holdfast [a-z][^`\n]*)`"), 0
	for page, text := range textsOfPages(t) {
		for _, m := range inline.FindAllStringSubmatch(text, -1) {
			found++
			form, _, _ := strings.Cut(regexp.MustCompile(`\$\([^)]*\)`).ReplaceAllString(m[1], ""), " -- ")
			for _, err := range usages(codeblock.Block{Page: page, Text: form + "\n"}) {
				t.Error(err)
			}
		}
	}
	if found < 75 {
		t.Errorf("%d commands in sentences, want at least 75: are the pages read?", found)
	}
}

// blocksOfPages returns the blocks of all pages except generated ones.
func blocksOfPages(t *testing.T) (all []codeblock.Block) {
	t.Helper()
	for page, text := range textsOfPages(t) {
		blocks, _ := codeblock.Find(page, text) // archtest reports the problems
		all = append(all, blocks...)
	}
	return all
}

func textsOfPages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	tree := filepath.Join("..", "..", "..", "..")
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/reference/*.md", "docs/internals/*.md", "examples/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(tree, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d pages, %v", pattern, len(found), err)
		}
		for _, file := range found {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if base := filepath.Base(file); base != "cli.md" && base != "CHANGELOG.md" {
				page, _ := filepath.Rel(tree, file)
				all[page] = string(text)
			}
		}
	}
	return all
}

// A checker tries commands with a binary of its own, which takes a temporary directory for / and
// has no usable store.
type checker struct {
	t      *testing.T
	binary string
	root   string
	dir    string
	seen   map[string]error
}

func newChecker(t *testing.T) *checker {
	t.Helper()
	c := &checker{t: t, root: filepath.Join(t.TempDir(), "root"), dir: t.TempDir(), seen: map[string]error{}}
	c.binary = filepath.Join(t.TempDir(), "holdfast")
	if err := os.MkdirAll(filepath.Join(c.root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "build", "-ldflags", "-X main.root="+c.root, "-o", c.binary, "../..").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return c
}

// check returns the problems of a block.
func (c *checker) check(b codeblock.Block) []error {
	switch b.Kind {
	case "sh", "bash":
		return c.shell(b, b.Text)
	case "console":
		return c.shell(b, typed(b.Text))
	case "crontab":
		return c.crontab(b)
	case "ini":
		return c.unit(b)
	case "conf":
		return c.configuration(b)
	case "usage":
		return usages(b)
	}
	return nil
}

// typed returns the input of a session: the lines after a prompt.
func typed(session string) (all string) {
	for line := range strings.Lines(session) {
		for _, prompt := range []string{"$ ", "> ", "# "} {
			if rest, found := strings.CutPrefix(line, prompt); found {
				all += rest
			}
		}
	}
	return all
}

// shell parses a script, and tries its commands of holdfast.
func (c *checker) shell(b codeblock.Block, script string) (problems []error) {
	language := syntax.LangPOSIX
	if b.Kind == "bash" {
		language = syntax.LangBash
	}
	file, err := syntax.NewParser(syntax.Variant(language)).Parse(strings.NewReader(script), b.At())
	if err != nil {
		return []error{err}
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok {
			words := make([]string, len(call.Args))
			for i, w := range call.Args {
				words[i] = valueOf(w.Parts)
			}
			problems = append(problems, c.call(b, words)...)
		}
		return true
	})
	return problems
}

// valueOf returns a value that a word of a script may have.
func valueOf(parts []syntax.WordPart) (value string) {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			value += strings.ReplaceAll(p.Value, `\`, "")
		case *syntax.SglQuoted:
			value += p.Value
		case *syntax.DblQuoted:
			value += valueOf(p.Parts)
		case *syntax.ParamExp:
			if p.Param.Value == "$" {
				value += fmt.Sprint(os.Getpid())
				break
			}
			value += "x"
		default:
			value += "x"
		}
	}
	return value
}

// before matches the words that may stand before holdfast in a command.
var before = regexp.MustCompile(`^(sudo|exec|env|nohup|time|command|\w+=.*)$`)

// call tries a command if it is one of holdfast, and checks the script that it runs.
func (c *checker) call(b codeblock.Block, words []string) (problems []error) {
	for len(words) > 0 && before.MatchString(words[0]) {
		words = words[1:]
	}
	if len(words) > 2 && words[0] == "flock" && words[2] == "holdfast" {
		words = words[2:]
	}
	if len(words) == 0 || filepath.Base(words[0]) != "holdfast" {
		return nil
	}
	words = slices.Clone(words[1:])
	if i := slices.Index(words, "-c"); i >= 0 && i+1 < len(words) {
		problems = c.shell(b, words[i+1])
	}
	for i, w := range words {
		switch w {
		case "--":
			return append(problems, c.try(b, words)...)
		case "--store":
			if i+1 < len(words) {
				problems = append(problems, c.store(b, words[i+1])...)
				words[i+1] = nowhere
			}
		}
	}
	return append(problems, c.try(b, words)...)
}

const (
	nowhere   = "sqlite:///nowhere/at/all.db" // a store that cannot exist
	elsewhere = "192.0.2.1:1"                 // an address of no host
)

// try runs the binary. The arguments are wrong if it ends with exit.Usage.
func (c *checker) try(b codeblock.Block, words []string) []error {
	if slices.Contains(words, "--demo") {
		words = append(slices.Clip(words), "--listen", elsewhere) // a demo has a store of its own, and would not end
	}
	status, said := c.run(words, "HOLDFAST_STORE="+nowhere)
	if status != exit.Usage {
		return nil
	}
	return []error{fmt.Errorf("%s: holdfast %s: %s", b.At(), strings.Join(words, " "), said)}
}

// run returns the exit status of the binary, and its output.
func (c *checker) run(words []string, env ...string) (int, string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.binary, words...)
	cmd.Dir = c.dir
	if null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0); err == nil {
		cmd.ExtraFiles = []*os.File{null} // 3, for --status-fd
		defer null.Close()
	}
	cmd.Env = append([]string{"HOME=" + c.dir, "PATH=" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + c.dir}, env...)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		c.t.Errorf("holdfast %s: it does not end", strings.Join(words, " "))
	}
	c.seen[strings.Join(words, " ")] = err
	return cmd.ProcessState.ExitCode(), strings.TrimSpace(string(out))
}

// hosts matches the servers in the URL of a store.
var hosts = regexp.MustCompile(`[^/,@?]+(,|/|\?|$)`)

// store checks that holdfast accepts a URL, with servers that are out of reach.
func (c *checker) store(b codeblock.Block, raw string) []error {
	scheme, rest, _ := strings.Cut(raw, "://")
	if !strings.HasPrefix(rest, "/") {
		end := len(rest)
		if i := strings.IndexAny(rest, "/?"); i >= 0 {
			end = i
		}
		port := 0
		rest = hosts.ReplaceAllStringFunc(rest[:end], func(s string) string {
			port++
			if strings.HasSuffix(s, ",") {
				return fmt.Sprintf("127.0.0.1:%d,", port)
			}
			return fmt.Sprintf("127.0.0.1:%d", port)
		}) + rest[end:]
	}
	status, said := c.run([]string{"ls", "--store", scheme + "://" + rest})
	if status == exit.Usage || status == exit.Config && !strings.HasPrefix(scheme, "sqlite") {
		return []error{fmt.Errorf("%s: --store %s: %s", b.At(), raw, said)}
	}
	return nil
}

// cronLine matches the times and the command of a line.
var cronLine = regexp.MustCompile(`^(@\w+|[-0-9*/,]+(?:\s+[-0-9A-Za-z*/,]+){4})\s+(.*)$`)

// crontab checks the lines of a user's crontab, or of /etc/cron.d.
func (c *checker) crontab(b codeblock.Block) (problems []error) {
	for line := range strings.Lines(b.Text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || regexp.MustCompile(`^\w+\s*=`).MatchString(line) {
			continue
		}
		m := cronLine.FindStringSubmatch(line)
		if m == nil || strings.Contains(m[1], "holdfast") {
			problems = append(problems, fmt.Errorf("%s: want five times and a command: %s", b.At(), line))
			continue
		}
		command := strings.ReplaceAll(m[2], `\%`, "")
		if strings.Contains(command, "%") {
			problems = append(problems, fmt.Errorf(`%s: cron ends the command at a %%: write \%%: %s`, b.At(), line))
		}
		if user, rest, _ := strings.Cut(command, " "); strings.HasPrefix(strings.TrimSpace(rest), "holdfast ") && user != "exec" {
			command = rest // a line of /etc/cron.d
		}
		problems = append(problems, c.shell(b, command)...)
	}
	return problems
}

// unit tries the commands of a systemd unit.
func (c *checker) unit(b codeblock.Block) (problems []error) {
	for _, m := range regexp.MustCompile(`(?m)^Exec\w+=[-@:+!]*(.*)$`).FindAllStringSubmatch(b.Text, -1) {
		problems = append(problems, c.shell(b, m[1])...)
	}
	return problems
}

// configuration checks that the binary can read a holdfast.conf.
func (c *checker) configuration(b codeblock.Block) []error {
	text := regexp.MustCompile(`(?m)^(store\s*=\s*\w+://(?:[^@\n]*@)?)[^/?\n]*`).ReplaceAllString(b.Text, "${1}127.0.0.1:1")
	file := filepath.Join(c.root, "etc", "holdfast.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return []error{err}
	}
	defer os.Remove(file)
	if status, said := c.run([]string{"ls"}); status != exit.Unavailable {
		return []error{fmt.Errorf("%s: %s", b.At(), said)}
	}
	return nil
}

// aFlag matches flags in the form of a command.
var aFlag = regexp.MustCompile(`(?:^|[\s\[|])(--[a-z-]+|-[a-zA-Z])\b`)

// usages checks that the commands and flags in forms of commands exist.
func usages(b codeblock.Block) (problems []error) {
	for line := range strings.Lines(b.Text) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "holdfast" {
			problems = append(problems, fmt.Errorf("%s: want a form of holdfast: %s", b.At(), line))
			continue
		}
		cmd, _, err := cli.Tree().Find(words[1:])
		if err != nil || !cmd.HasParent() {
			problems = append(problems, fmt.Errorf("%s: there is no command %s (%w)", b.At(), words[1], err))
			continue
		}
		cmd.InheritedFlags() // adds them to Flags
		for _, m := range aFlag.FindAllStringSubmatch(strings.TrimSuffix(line, "\n"), -1) {
			name := strings.TrimLeft(m[1], "-")
			if found := cmd.Flags().Lookup(name); found == nil && (len(name) > 1 || cmd.Flags().ShorthandLookup(name) == nil) {
				problems = append(problems, fmt.Errorf("%s: %s has no %s", b.At(), cmd.CommandPath(), m[1]))
			}
		}
	}
	return problems
}
