package main

import (
	"bufio"
	"errors"
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
	ended := make(chan bool, 1)
	go func() { // ends with the mark, or with the connection
		for lines.Scan() {
			if strings.HasSuffix(lines.Text(), endMark) {
				ended <- true
				return
			}
			c.note(lines.Text())
		}
		ended <- false
	}()
	err = f()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	if _, e := s.server.Do("ECHO", "the end"); err == nil {
		err = e
	}
	if ok := <-ended; err == nil && !ok {
		err = errors.New("MONITOR ended before its time")
	}
	return c, err
}

// endMark is how MONITOR shows the last command of count.
const endMark = `"ECHO" "the end"`
