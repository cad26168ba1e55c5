// Manual writes the reference of the command from its --help texts: one page in Markdown,
// or a page for man(1) of each command.
//
//	go run ./cmd/holdfast/internal/manual -markdown docs/reference/cli.md
//	go run ./cmd/holdfast/internal/manual -man dist/man
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/cli"
)

func main() {
	markdown := flag.String("markdown", "", "write docs/reference/cli.md to this `FILE`")
	man := flag.String("man", "", "write the pages of section 1 to this `DIRECTORY`")
	flag.Parse()
	if err := run(*markdown, *man); err != nil {
		fmt.Fprintln(os.Stderr, "manual:", err)
		os.Exit(1)
	}
}

func run(markdown, man string) error {
	if markdown != "" {
		var b bytes.Buffer
		writeMarkdown(&b)
		if err := os.WriteFile(markdown, b.Bytes(), 0o644); err != nil { //nolint:gosec // a page of the documentation
			return err
		}
	}
	if man == "" {
		return nil
	}
	if err := os.MkdirAll(man, 0o755); err != nil { //nolint:gosec // manuals are public
		return err
	}
	return writeMan(man)
}

const intro = `# The command, flag by flag

This page is the output of ` + "`holdfast COMMAND --help`" + `, written by ` + "`make manual`" + `. Every
command also has the flags ` + "`--store`, `--store-file` and `--help`" + `.
[run.md](../run.md) is the guide.

`

// writeMarkdown writes the help of each command, without the global flags.
func writeMarkdown(w io.Writer) {
	fmt.Fprint(w, intro)
	each(cli.Tree(), func(c *cobra.Command) {
		var help strings.Builder
		c.SetOut(&help)
		_ = c.Help() // a strings.Builder takes everything
		text, _, _ := strings.Cut(help.String(), "\nGlobal Flags:\n")
		fmt.Fprintf(w, "## %s\n\n```\n%s```\n\n", c.CommandPath(), text)
	})
}

// writeMan writes holdfast.1, holdfast-run.1 and so on.
func writeMan(dir string) error {
	root := cli.Tree()
	each(root, func(c *cobra.Command) { c.Long = quoted(c.Long) })
	header := &doc.GenManHeader{Section: "1", Source: "holdfast", Manual: "holdfast manual"}
	return doc.GenManTree(root, header, dir)
}

// quoted indents the tables of a help text so that Markdown, the source of manual pages, keeps
// their lines.
func quoted(text string) string {
	lines, inside := strings.Split(text, "\n"), false
	for i, line := range lines {
		table := strings.HasPrefix(line, "  ")
		if table {
			lines[i] = "    " + line
		}
		if table != inside {
			lines[i] = "\n" + lines[i]
		}
		inside = table
	}
	return strings.Join(lines, "\n")
}

// each calls f for c and all visible commands below it.
func each(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			each(sub, f)
		}
	}
}
