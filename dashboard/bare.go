package dashboard

import (
	"bytes"
	"regexp"
)

// bareStyle returns a style sheet without comments and indentation.
func bareStyle(body []byte) []byte {
	return flat(regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAll(body, nil)) // compiled here: see newForms
}

// bareScript returns a script without comments and indentation. In our scripts a comment has a
// line of its own, or follows one of the signs below. Only templates of elements have several
// lines: white space does not matter in them, and no line of theirs looks like a comment.
func bareScript(body []byte) []byte {
	return flat(regexp.MustCompile(`(?m)(^|[;,{])[ \t]*// .*$`).ReplaceAll(body, []byte("$1")))
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
