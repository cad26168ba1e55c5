package main

import (
	"bufio"
	"net"
	"strings"
	"time"
)

// Commands are those that a server has carried out: for clients, and inside
// scripts.
type commands struct{ outer, inner int64 }

// note counts a line of what MONITOR says. It is
//
//	+1339518083.107412 [0 127.0.0.1:60866] "get" "x"
//	+1339518083.107412 [0 lua] "get" "x"
//
// The words of the benchmark itself, and pings, are not counted.
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

// count returns the commands that f causes. It slows the server down, and is
// not to be used where time is measured.
func count(s *redisStore, f func() error) (c commands, err error) {
	conn, err := net.Dial("tcp", s.addr())
	if err != nil {
		return c, err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil {
		return c, err
	}
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20)
	lines.Scan() // +OK
	done := make(chan struct{})
	go func() { // ends with the connection's deadline, below
		defer close(done)
		for lines.Scan() {
			c.note(lines.Text())
		}
	}()
	err = f()
	// What was carried out before this is on its way to us.
	_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	<-done
	return c, err
}
