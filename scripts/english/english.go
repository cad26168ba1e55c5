package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"fmt"
	"go/scanner"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
)

//go:embed rules.txt
var rulesText []byte

// A rule is a paragraph of rules.txt.
type rule struct {
	never *regexp.Regexp
	kind  string // never, name or word
	say   string
	fine  []*regexp.Regexp

	bad, good []string // examples
}

// A piece is a text that belongs together, such as a paragraph, a comment, a
// string or the words of an identifier, and the line on which it begins.
type piece struct {
	line int
	text string
	name bool // it is an identifier
}

// A finding is a place that breaks a rule.
type finding struct {
	file       string
	line       int
	found, say string
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %q: say %s", f.file, f.line, f.found, f.say)
}

// parseRules reads the format of rules.txt.
func parseRules(text []byte) (rules []rule, err error) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		if lines.Text() == "" || strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		key, value, _ := strings.Cut(lines.Text(), " ")
		value = strings.TrimLeft(value, " ")
		if key == "never" || key == "name" || key == "word" {
			rules = append(rules, rule{kind: key})
		}
		if len(rules) == 0 {
			return nil, fmt.Errorf("rules.txt:%d: a rule begins with never, name or word", n)
		}
		if err := rules[len(rules)-1].set(key, value); err != nil {
			return nil, fmt.Errorf("rules.txt:%d: %w", n, err)
		}
	}
	return rules, lines.Err()
}

// set takes over one line of a rule.
func (r *rule) set(key, value string) (err error) {
	switch key {
	case "never", "name", "word":
		r.never, err = compile(value)
	case "fine":
		var fine *regexp.Regexp
		fine, err = compile(value)
		r.fine = append(r.fine, fine)
	case "say":
		r.say = value
	case "bad":
		r.bad = append(r.bad, value)
	case "good":
		r.good = append(r.good, value)
	default:
		err = fmt.Errorf("%q means nothing here", key)
	}
	return err
}

// compile lets a space of the expression match any white space, and lets the expression
// begin with a word.
func compile(expression string) (*regexp.Regexp, error) {
	if !strings.HasPrefix(expression, "^") {
		expression = `\b(?:` + expression + `)`
	}
	return regexp.Compile(`(?i)` + strings.ReplaceAll(expression, " ", `\s+`))
}

// check returns what breaks the rules in a file.
func check(rules []rule, file string, source []byte) (all []finding) {
	for _, p := range pieces(file, source) {
		for _, s := range sentences(p) {
			for _, r := range rules {
				if at := r.find(s); at != nil {
					line := s.line + strings.Count(s.text[:at[0]], "\n")
					found := strings.Join(strings.Fields(s.text[at[0]:at[1]]), " ")
					all = append(all, finding{file, line, found, r.say})
				}
			}
		}
	}
	return all
}

// find returns where a sentence breaks the rule, or nil.
func (r rule) find(s piece) []int {
	if s.name && r.kind == "never" || !s.name && r.kind == "name" {
		return nil
	}
	for _, fine := range r.fine {
		s.text = fine.ReplaceAllStringFunc(s.text, func(s string) string { return strings.Repeat("~", len(s)) })
	}
	return r.never.FindStringIndex(s.text)
}

// sentenceEnd finds the ends of sentences, list items, table cells and paragraphs.
var sentenceEnd = regexp.MustCompile("[.!?:;]['\"`)*]*\\s+|\\n\\s*\\n|\\n\\s*[-*]\\s+|\\|")

// sentences takes a piece to pieces.
func sentences(p piece) (all []piece) {
	line, rest := p.line, p.text
	for rest != "" {
		end := len(rest)
		if at := sentenceEnd.FindStringIndex(rest); at != nil {
			end = at[1]
		}
		trimmed := strings.TrimLeft(rest[:end], " \t\r\n#>*-0123456789.`\"")
		begin := rest[:end-len(trimmed)]
		all = append(all, piece{line + strings.Count(begin, "\n"), strings.TrimRight(trimmed, " \t\r\n\"`"), p.name})
		line += strings.Count(rest[:end], "\n")
		rest = rest[end:]
	}
	return all
}

// pieces returns the texts of a file, or nothing if it is of a kind that has
// none for people.
func pieces(file string, source []byte) []piece {
	switch filepath.Ext(file) {
	case ".md":
		return []piece{{1, string(source), false}}
	case ".go":
		return goPieces(source)
	case ".lua", ".sql":
		return linePieces(source, "--", true)
	case ".sh", ".txt", ".yml":
		return linePieces(source, "#", false)
	}
	return nil
}

// goPieces returns the comments, strings and identifiers of a Go file. Comments
// on consecutive lines are one piece.
func goPieces(source []byte) (all []piece) {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(source))
	s.Init(file, source, nil, scanner.ScanComments)
	comment, last := -1, 0 // the piece that a comment may continue, and its last line
	for {
		pos, kind, text := s.Scan()
		switch line := file.Line(pos); kind {
		case token.EOF:
			return all
		case token.COMMENT:
			text = strings.TrimPrefix(strings.TrimPrefix(text, "//"), "/*")
			if comment >= 0 && line == last+1 {
				all[comment].text += "\n" + text
			} else {
				comment, all = len(all), append(all, piece{line, text, false})
			}
			last = line + strings.Count(text, "\n")
		case token.STRING:
			all = append(all, piece{line, text, false})
		case token.IDENT:
			all = append(all, name(line, text))
		}
	}
}

// linePieces returns the comments of a file, which begin with mark and end with
// the line, and on request the identifiers.
func linePieces(source []byte, mark string, identifiers bool) (all []piece) {
	comment, last := -1, 0
	for i, text := range strings.Split(string(source), "\n") {
		code, text, found := strings.Cut(text, mark)
		switch {
		case !found:
		case comment >= 0 && i == last+1:
			all[comment].text += "\n" + text
			last = i
		default:
			comment, last, all = len(all), i, append(all, piece{i + 1, text, false})
		}
		if identifiers {
			for _, id := range identifier.FindAllString(code, -1) {
				all = append(all, name(i+1, id))
			}
		}
	}
	return all
}

var (
	identifier = regexp.MustCompile(`\w+`)
	camel      = regexp.MustCompile(`([a-z0-9])([A-Z])`)
)

// name returns the words of an identifier: "book Of Names" for bookOfNames.
func name(line int, id string) piece {
	spaced := camel.ReplaceAllString(id, "$1 $2")
	return piece{line, strings.ReplaceAll(spaced, "_", " "), true}
}
