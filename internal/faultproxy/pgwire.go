package faultproxy

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// NewPostgres is New in front of a PostgreSQL server, for clients without TLS and without
// a password. A request ends with a Sync, or is a simple query, and its reply ends
// when the server is ready for the next. The words of a request are its statement and the
// parameters. A connection's first request has the word "STARTUP". A request that only
// prepares a statement has the word "PREPARE". Notifications count as messages of
// subscriptions. COPY is not supported.
func NewPostgres(t testing.TB, target string) *Proxy {
	t.Helper()
	return listen(t, target, func(r io.Reader) protocol {
		return &pgWire{in: bufio.NewReader(r), statements: map[string]string{}}
	})
}

var errPostgres = errors.New("not the protocol of PostgreSQL, or not without TLS")

// The codes of the first message of a client.
const (
	pgVersion3 = 3
	pgCancel   = 80877102 // the connection's only message
)

// A pgWire reads one direction of a connection.
type pgWire struct {
	in         *bufio.Reader
	begun      bool              // the client's first message was read
	statements map[string]string // the prepared statements, by name
}

// request implements protocol.
func (w *pgWire) request() (words []string, raw []byte, err error) {
	if !w.begun {
		w.begun = true
		return w.startup()
	}
	for {
		kind, body, all, err := w.message()
		if err != nil {
			return nil, nil, err
		}
		raw = append(raw, all...)
		switch kind {
		case 'Q':
			return []string{text(&body)}, raw, nil
		case 'X': // has no reply
			return nil, raw, nil
		case 'P':
			name := text(&body)
			w.statements[name] = text(&body)
		case 'B':
			words = w.bound(body)
		case 'S':
			if words == nil {
				words = []string{"PREPARE"}
			}
			return words, raw, nil
		}
	}
}

// startup reads the first message, which has no type byte.
func (w *pgWire) startup() (words []string, raw []byte, err error) {
	body, raw, err := w.sized(nil)
	if err != nil || len(body) < 4 {
		return nil, nil, errors.Join(errPostgres, err)
	}
	switch code := binary.BigEndian.Uint32(body); {
	case code>>16 == pgVersion3:
		return []string{"STARTUP"}, raw, nil
	case code == pgCancel:
		return nil, raw, nil
	}
	return nil, nil, errPostgres
}

// bound returns the words of a Bind message.
func (w *pgWire) bound(body []byte) []string {
	text(&body) // the portal
	words := []string{w.statements[text(&body)]}
	for range number(&body, 2) { // the formats of the parameters
		number(&body, 2)
	}
	for range number(&body, 2) {
		length := number(&body, 4)
		if length > len(body) { // NULL has length -1, which is large as an unsigned number
			length = 0
		}
		words = append(words, string(body[:length]))
		body = body[length:]
	}
	return words
}

// text removes and returns the string at the beginning of a message.
func text(body *[]byte) string {
	s, rest, _ := bytes.Cut(*body, []byte{0})
	*body = rest
	return string(s)
}

// number removes and returns the unsigned number of size bytes at the beginning of a message.
func number(body *[]byte, size int) (n int) {
	size = min(size, len(*body))
	for _, b := range (*body)[:size] {
		n = n<<8 | int(b)
	}
	*body = (*body)[size:]
	return n
}

// reply implements protocol. Data that the server sends without a request is a message, and so is
// an incomplete reply at the end of the connection.
func (w *pgWire) reply() (reply, error) {
	var raw []byte
	for {
		kind, _, all, err := w.message()
		switch {
		case err != nil && len(raw) > 0:
			return reply{raw: raw, kind: '>'}, nil
		case err != nil:
			return reply{}, err
		case raw == nil && strings.IndexByte("ANS", kind) >= 0:
			return reply{raw: all, kind: '>', word: map[bool]string{true: "message"}[kind == 'A']}, nil
		}
		if raw = append(raw, all...); kind == 'Z' {
			return reply{raw: raw, kind: kind}, nil
		}
	}
}

// message reads one message that begins with a type byte.
func (w *pgWire) message() (kind byte, body, raw []byte, err error) {
	if kind, err = w.in.ReadByte(); err != nil {
		return 0, nil, nil, err
	}
	body, raw, err = w.sized([]byte{kind})
	return kind, body, raw, err
}

// sized reads a length and a body, and appends both to raw. The length includes its own 4 bytes.
func (w *pgWire) sized(raw []byte) (body, all []byte, err error) {
	start := len(raw)
	raw = append(raw, 0, 0, 0, 0)
	if _, err := io.ReadFull(w.in, raw[start:]); err != nil {
		return nil, nil, err
	}
	length := binary.BigEndian.Uint32(raw[start:])
	if length < 4 || length > maxBlock {
		return nil, nil, fmt.Errorf("%w: length %d", errPostgres, length)
	}
	body = make([]byte, length-4)
	if _, err := io.ReadFull(w.in, body); err != nil {
		return nil, nil, err
	}
	return body, append(raw, body...), nil
}
