package faultproxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxElements and maxBlock are the greatest lengths that the proxy accepts, which are the limits
// of Redis itself.
const (
	maxElements = 1 << 20
	maxBlock    = 512 << 20
)

var errProtocol = errors.New("not RESP")

// A wire reads RESP 2 and 3 and keeps every byte of the value it reads, so
// that the value can be passed on unchanged.
type wire struct {
	in  *bufio.Reader
	raw []byte
}

func newWire(r io.Reader) *wire { return &wire{in: bufio.NewReader(r)} }

// request reads one command and returns its words and its bytes.
func (w *wire) request() (words []string, raw []byte, err error) {
	w.raw = nil
	kind, rest, err := w.line()
	if err != nil {
		return nil, nil, err
	}
	if kind != '*' { // an inline command, as a person types it
		return strings.Fields(string(kind) + rest), w.raw, nil
	}
	n, err := count(rest, maxElements)
	if err != nil {
		return nil, nil, err
	}
	for range n {
		word, err := w.bulk()
		if err != nil {
			return nil, nil, err
		}
		words = append(words, word)
	}
	return words, w.raw, nil
}

func (w *wire) bulk() (string, error) {
	kind, rest, err := w.line()
	if err != nil {
		return "", err
	}
	if kind != '$' {
		return "", fmt.Errorf("%w: element of a command begins with %q", errProtocol, kind)
	}
	return w.block(rest)
}

// A reply is one value that a server sent.
type reply struct {
	raw  []byte
	kind byte
	word string // the first string in it; it names the kind of a message
}

// reply reads one value, with the attributes that may precede it.
func (w *wire) reply() (reply, error) {
	w.raw = nil
	for {
		kind, word, err := w.value()
		if err != nil {
			return reply{}, err
		}
		if kind != '|' {
			return reply{raw: w.raw, kind: kind, word: word}, nil
		}
	}
}

// value reads one value, nested ones included, and returns its type and the
// first string in it.
func (w *wire) value() (kind byte, word string, err error) {
	kind, rest, err := w.line()
	if err != nil {
		return 0, "", err
	}
	switch kind {
	case '+', '-', ':', ',', '(', '#', '_':
		return kind, rest, nil
	case '$', '=', '!':
		word, err = w.block(rest)
		return kind, word, err
	case '*', '~', '>':
		word, err = w.elements(rest, 1)
		return kind, word, err
	case '%', '|':
		word, err = w.elements(rest, 2)
		return kind, word, err
	}
	return 0, "", fmt.Errorf("%w: a value begins with %q", errProtocol, kind)
}

// elements reads the values of an aggregate of the given length and returns
// the first string.
func (w *wire) elements(length string, each int) (first string, err error) {
	n, err := count(length, maxElements)
	if err != nil {
		return "", err
	}
	for i := range n * each {
		_, word, err := w.value()
		if err != nil {
			return "", err
		}
		if i == 0 {
			first = word
		}
	}
	return first, nil
}

// line reads up to CR LF and returns the first byte and what follows it.
func (w *wire) line() (kind byte, rest string, err error) {
	line, err := w.in.ReadString('\n')
	if err != nil {
		return 0, "", err
	}
	w.raw = append(w.raw, line...)
	line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
	if line == "" {
		return 0, "", fmt.Errorf("%w: an empty line", errProtocol)
	}
	return line[0], line[1:], nil
}

// block reads the bytes that a length announces, and their CR LF.
func (w *wire) block(length string) (string, error) {
	n, err := count(length, maxBlock)
	if err != nil || length == "-1" {
		return "", err
	}
	start := len(w.raw)
	w.raw = append(w.raw, make([]byte, n+2)...)
	if _, err := io.ReadFull(w.in, w.raw[start:]); err != nil {
		return "", err
	}
	return string(w.raw[start : start+n]), nil
}

// count parses a length; the -1 of a null counts nothing.
func count(s string, limit int) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < -1 || n > limit {
		return 0, fmt.Errorf("%w: length %q", errProtocol, s)
	}
	return max(n, 0), nil
}
