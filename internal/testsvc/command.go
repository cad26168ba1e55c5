//go:build unix

package testsvc

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// commandTimeout bounds one command of Do.
const commandTimeout = 5 * time.Second

// errReply is the error of a command that the server refuses.
var errReply = errors.New("the server refuses")

// Do sends one command on a connection of its own and returns the reply as text: an array has one
// line for each element. If the server is stopped, Do fails after some seconds.
func (s *Server) Do(words ...string) (string, error) {
	conn, err := net.DialTimeout("tcp", s.Addr, commandTimeout)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	return Ask(conn, words...)
}

// Ask sends one command on conn and returns the reply as Do does.
func Ask(conn net.Conn, words ...string) (string, error) {
	if err := conn.SetDeadline(time.Now().Add(commandTimeout)); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := io.WriteString(conn, b.String()); err != nil {
		return "", err
	}
	lines, err := readReply(bufio.NewReader(conn))
	return strings.Join(lines, "\n"), err
}

// IsMaster reports whether the server is a master.
func (s *Server) IsMaster() bool {
	role, err := s.Do("ROLE")
	return err == nil && strings.HasPrefix(role, "master")
}

// mustDo is Do for a command that must not fail.
func (s *Server) mustDo(words ...string) string {
	s.t.Helper()
	text, err := s.Do(words...)
	if err != nil {
		s.t.Fatalf("%s: %s: %v", s.Addr, strings.Join(words, " "), err)
	}
	return text
}

// readReply reads one reply of RESP 2, nested ones flattened.
func readReply(in *bufio.Reader) ([]string, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return nil, io.ErrUnexpectedEOF
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+', ':':
		return []string{rest}, nil
	case '-':
		return nil, fmt.Errorf("%w: %s", errReply, rest)
	}
	n, err := strconv.Atoi(rest)
	if err != nil || n < 0 {
		return nil, err
	}
	if kind == '$' {
		text := make([]byte, n+2)
		_, err := io.ReadFull(in, text)
		return []string{string(text[:n])}, err
	}
	var all []string
	for range n {
		some, err := readReply(in)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}
