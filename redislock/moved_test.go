package redislock

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
)

// A signpost is a node of a cluster that redirects every name to another node.
type signpost struct {
	listener net.Listener
	other    string
	asked    *atomic.Int64
}

// signposts are two nodes that redirect to each other.
func signposts(t *testing.T) (addr string, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	var nodes [2]signpost
	for i := range nodes {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		nodes[i] = signpost{listener: l, asked: asked}
	}
	for i := range nodes {
		nodes[i].other = nodes[1-i].listener.Addr().String()
		go nodes[i].serve() // ends with the listener
	}
	return nodes[1].other, asked
}

func (s signpost) serve() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		go s.answer(conn) // ends with the connection
	}
}

func (s signpost) answer(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	for in := bufio.NewReader(conn); ; {
		words, err := readCommand(in)
		if err != nil {
			return
		}
		host, port, _ := net.SplitHostPort(s.listener.Addr().String())
		reply := "+OK\r\n"
		switch strings.ToUpper(words[0]) {
		case "HELLO":
			reply = "-ERR unknown command 'HELLO'\r\n"
		case "PING":
			reply = "+PONG\r\n"
		case "CLUSTER":
			reply = fmt.Sprintf("*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$%d\r\n%s\r\n:%s\r\n$1\r\nx\r\n", len(host), host, port)
		case "EVALSHA", "EVAL":
			s.asked.Add(1)
			reply = "-MOVED 15891 " + s.other + "\r\n" // the slot of t
		}
		if _, err := io.WriteString(conn, reply); err != nil {
			return
		}
	}
}

// readCommand reads an array of bulk strings.
func readCommand(in *bufio.Reader) ([]string, error) {
	var n int
	if _, err := fmt.Fscanf(in, "*%d\r\n", &n); err != nil {
		return nil, err
	}
	words := make([]string, n)
	for i := range words {
		var size int
		if _, err := fmt.Fscanf(in, "$%d\r\n", &size); err != nil {
			return nil, err
		}
		word := make([]byte, size+2)
		if _, err := io.ReadFull(in, word); err != nil {
			return nil, err
		}
		words[i] = string(word[:size])
	}
	return words, nil
}

// TestRedirectionsAreBounded checks that nodes that disagree do not get a request again and again
// while its caller waits.
func TestRedirectionsAreBounded(t *testing.T) {
	addr, asked := signposts(t)
	e := open(t, "redis+cluster://"+addr)
	ctx, cancel := context.WithTimeout(t.Context(), drivertest.Patience)
	defer cancel()
	_, err := e.Acquire(ctx, drivertest.Request("t", time.Minute))
	wantIs(t, "acquire", err, driver.ErrUnavailable)
	wantText(t, err, "nodes disagree")
	if n := asked.Load(); n > 2*maxRedirections {
		t.Errorf("one request was sent %d times", n)
	}
}
