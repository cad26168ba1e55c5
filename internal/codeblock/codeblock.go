// Package codeblock reads the code blocks of the documentation, so that tests can check
// each of them.
//
// The fence of a block names its kind; see Checks for the kinds. In Go code "…" stands for
// omitted code. Two HTML comments are for the checks. One has declarations that the Go code of
// the page needs; it can be anywhere in the page:
//
//	<!-- go
//	var send func(to string) error
//	-->
//
// The other precedes a block whose kind is not in Checks, and names the test that checks it:
//
//	<!-- checked by TestShow -->
package codeblock

import (
	"fmt"
	"regexp"
	"strings"
)

// A Block is a piece of code in a page.
type Block struct {
	Page string
	Line int // the number of its first line of code
	Kind string
	Text string

	// CheckedBy is the test that the page names for the block.
	CheckedBy string
}

// At returns the page and the line of the block, for messages.
func (b Block) At() string { return fmt.Sprintf("%s:%d", b.Page, b.Line) }

// Checks names the check for the blocks of each kind. Blocks of another kind need a test
// of their own, which the page names.
var Checks = map[string]string{
	"go":      "TestPagesCompile",
	"hidden":  "TestPagesCompile", // the declarations in an HTML comment
	"json":    "TestPagesCompile",
	"bash":    "TestCommandsInPages",
	"sh":      "TestScriptsInPages",  // TestCommandsInPages checks the arguments of holdfast
	"console": "TestSessionsInPages", // commands and their output
	"crontab": "TestCommandsInPages",
	"conf":    "TestCommandsInPages", // a holdfast.conf
	"ini":     "TestCommandsInPages", // the commands of a systemd unit
	"redis":   "TestSettingsInPages", // settings of a redis.conf
	"usage":   "TestCommandsInPages", // the flags of a form such as "holdfast wait NAME [-q]"
}

var (
	fence     = regexp.MustCompile("^( *)```(.*)$")
	checkedBy = regexp.MustCompile(`^<!-- checked by (\w+) -->$`)
	listItem  = regexp.MustCompile(`^ *([-*]|\d+\.) `)
)

// Find returns the code blocks of a page. Its errors have the lines of malformed blocks.
func Find(page, text string) (blocks []Block, problems []error) {
	lines := strings.Split(text, "\n")
	problem := func(at int, what string) {
		problems = append(problems, fmt.Errorf("%s:%d: %s", page, at+1, what))
	}
	by, inList := "", false
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		m := fence.FindStringSubmatch(line)
		switch {
		case m != nil:
			b := Block{Page: page, Line: i + 2, Kind: strings.TrimSpace(m[2]), CheckedBy: by}
			end := until(lines, i+1, m[1]+"```")
			if end < 0 {
				problem(i, "a block that does not end")
				return blocks, problems
			}
			for _, l := range lines[i+1 : end] {
				b.Text += strings.TrimPrefix(l, m[1]) + "\n"
			}
			if b.Kind == "" {
				problem(i, "a block that does not say what it is")
			}
			blocks, by, i = append(blocks, b), "", end
		case line == "<!-- go":
			end := until(lines, i+1, "-->")
			if end < 0 {
				problem(i, "a comment that does not end")
				return blocks, problems
			}
			blocks = append(blocks, Block{Page: page, Line: i + 2, Kind: "hidden", Text: strings.Join(lines[i+1:end], "\n") + "\n"})
			i = end
		case checkedBy.MatchString(line):
			by = checkedBy.FindStringSubmatch(line)[1]
		case line == "":
		default:
			if by != "" {
				problem(i, "a test is named for a block, and there is none")
			}
			by = ""
			indented := strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")
			if indented && !inList && i > 0 && lines[i-1] == "" {
				problem(i, "an indented block: fence it, and say what it is")
			}
			inList = listItem.MatchString(line) || inList && strings.HasPrefix(line, "  ")
		}
	}
	return blocks, problems
}

// until returns the index of the next line that is end, or -1.
func until(lines []string, from int, end string) int {
	for i := from; i < len(lines); i++ {
		if strings.TrimRight(lines[i], " ") == end {
			return i
		}
	}
	return -1
}
