package dashboard

import (
	"bytes"
	"regexp"
	"strings"
)

// bareStyle returns a style sheet without comments and indentation.
func bareStyle(body []byte) []byte {
	return flat(regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAll(body, nil)) // compiled here: see newForms
}

// bareScript returns a script without comments, indentation and needless spaces. In our scripts
// only templates of elements have several lines, and white space does not matter in them.
func bareScript(body []byte) []byte {
	s := scanner{rest: body}
	s.code(false)
	return flat(s.out.Bytes())
}

// flat removes indentation and empty lines.
func flat(body []byte) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(body) {
		if line = bytes.TrimLeft(line, " \t"); len(bytes.TrimSpace(line)) > 0 {
			b.Write(line)
		}
	}
	return b.Bytes()
}

// A scanner copies one of our scripts. It must know where code ends, and where a string or a
// regular expression begins.
type scanner struct {
	rest []byte
	out  bytes.Buffer
}

// tight has the signs that need no space around them. Signs such as + and -, which mean
// something else when doubled, are not among them.
const tight = "=<>&|?:,;{}()[]"

// beforeExpression has the signs after which / begins a regular expression.
const beforeExpression = "(,=:[!&|?{};>"

// code copies code up to its end or, in a template, to the brace that closes it.
func (s *scanner) code(inTemplate bool) {
	for depth := 0; len(s.rest) > 0; {
		c := s.rest[0]
		switch {
		case bytes.HasPrefix(s.rest, []byte("//")):
			s.rest = s.rest[max(0, bytes.IndexByte(append(s.rest, '\n'), '\n')):]
			continue
		case c == '"' || c == '\'':
			s.text(c)
			continue
		case c == '/' && s.expressionHere():
			s.text('/')
			continue
		case c == '`':
			s.template()
			continue
		case c == '}' && inTemplate && depth == 0:
			return
		case c == '{':
			depth++
		case c == '}':
			depth--
		}
		s.rest = s.rest[1:]
		if c != ' ' || !s.needless() {
			s.out.WriteByte(c)
		}
	}
}

// needless reports whether a space between the output and the rest separates nothing.
func (s *scanner) needless() bool {
	return strings.IndexByte(tight+" \n", s.last()) >= 0 || len(s.rest) > 0 && strings.IndexByte(tight+" \n", s.rest[0]) >= 0
}

func (s *scanner) last() byte {
	if all := s.out.Bytes(); len(all) > 0 {
		return all[len(all)-1]
	}
	return '\n'
}

func (s *scanner) expressionHere() bool {
	before := bytes.TrimRight(s.out.Bytes(), " \n")
	return len(before) > 0 && strings.IndexByte(beforeExpression, before[len(before)-1]) >= 0 || bytes.HasSuffix(before, []byte("return"))
}

// take copies n bytes.
func (s *scanner) take(n int) {
	n = min(n, len(s.rest))
	s.out.Write(s.rest[:n])
	s.rest = s.rest[n:]
}

// text copies a quoted string or a regular expression. The end sign does not end a regular
// expression inside a character class.
func (s *scanner) text(end byte) {
	s.take(1)
	for class := false; len(s.rest) > 0; {
		c := s.rest[0]
		if c == '\\' {
			s.take(1)
		}
		s.take(1)
		switch {
		case c == end && !class || c == '\n':
			return
		case end == '/' && (c == '[' || c == ']'):
			class = c == '['
		}
	}
}

// template copies a template, with the code in it.
func (s *scanner) template() {
	s.take(1)
	for len(s.rest) > 0 {
		switch {
		case s.rest[0] == '`':
			s.take(1)
			return
		case s.rest[0] == '\\':
			s.take(2)
		case bytes.HasPrefix(s.rest, []byte("${")):
			s.take(2)
			s.code(true)
			s.take(1)
		default:
			s.take(1)
		}
	}
}
