package main

import (
	"bufio"
	"errors"
	"net"
	"strings"
	"time"
)

// commands counts the commands that a server has executed: outer commands for clients, inner
// commands in scripts.
type commands struct{ outer, inner int64 }

// note counts a line of MONITOR. It is
//
//	+1339518083.107412 [0 127.0.0.1:60866] "get" "x"
//	+1339518083.107412 [0 lua] "get" "x"
//
// The commands of the benchmark itself, and pings, are not counted.
func (c *commands) note(line string) {
	_, rest, ok := strings.Cut(line, " [")
	from, command, both := strings.Cut(rest, "] ")
	if !ok || !both {
		return
	}
	word, _, _ := strings.Cut(command, " ")
	switch word = strings.ToLower(strings.Trim(word, `"`)); {
	case strings.HasSuffix(from, " lua"):
		c.inner++
	case word != "info" && word != "ping":
		c.outer++
	}
}

// per adds to a sample the commands per operation, for n operations.
func (c commands) per(n int64, s sample) {
	s["commands"], s["inner"] = float64(c.outer)/float64(n), float64(c.inner)/float64(n)
}

// A monitor counts commands between begin and end. It slows down the server, so it must not run
// while time is measured.
type monitor struct {
	server  *redisStore
	conn    net.Conn
	counted commands
	ended   chan bool
}

// The texts of ECHO that MONITOR shows for begin and end.
const (
	beginWord = "the beginning"
	endWord   = "the end"
)

// openMonitor starts to listen.
func openMonitor(s *redisStore) (*monitor, error) {
	conn, err := net.Dial("tcp", s.addr())
	if err != nil {
		return nil, err
	}
	m := &monitor{server: s, conn: conn, ended: make(chan bool, 1)}
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil {
		_ = conn.Close()
		return nil, err
	}
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20)
	lines.Scan() // +OK
	go m.listen(lines)
	return m, nil
}

// listen counts commands until the end text, or until the connection ends.
func (m *monitor) listen(lines *bufio.Scanner) {
	begun := false
	for lines.Scan() {
		switch line := lines.Text(); {
		case strings.HasSuffix(line, `"ECHO" "`+endWord+`"`):
			m.ended <- true
			return
		case strings.HasSuffix(line, `"ECHO" "`+beginWord+`"`):
			begun = true
		case begun:
			m.counted.note(line)
		}
	}
	m.ended <- false
}

func (m *monitor) begin() error {
	_, err := m.server.server.Do("ECHO", beginWord)
	return err
}

// end returns when all commands before it are counted.
func (m *monitor) end() error {
	if _, err := m.server.server.Do("ECHO", endWord); err != nil {
		return err
	}
	_ = m.conn.SetReadDeadline(time.Now().Add(patience))
	if !<-m.ended {
		return errors.New("MONITOR ended before its time")
	}
	return nil
}

func (m *monitor) close() { _ = m.conn.Close() }

// count adds to a sample the commands of n operations, which f does between the marks. It adds
// nothing if the trial does not count commands.
func (t *trial) count(s sample, f func(marks) (n int64, err error)) error {
	server, ok := t.store.(*redisStore)
	if !ok || !t.counts {
		return nil
	}
	m, err := openMonitor(server)
	if err != nil {
		return err
	}
	defer m.close()
	n, err := f(marks{m.begin, m.end})
	if err == nil && n > 0 {
		m.counted.per(n, s)
	}
	return err
}

// countAll is count for operations that are all between the marks.
func (t *trial) countAll(s sample, do func() (n int64, err error)) error {
	return t.count(s, func(m marks) (int64, error) {
		if err := m.begin(); err != nil {
			return 0, err
		}
		n, err := do()
		return n, errors.Join(err, m.end())
	})
}
