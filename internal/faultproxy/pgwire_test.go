//go:build unix

package faultproxy

import (
	"bytes"
	"encoding/binary"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// A pgCaller is a client that writes messages by hand.
type pgCaller struct {
	t    *testing.T
	conn net.Conn
	in   *pgWire
}

func dialPostgres(t *testing.T, p *Proxy) *pgCaller {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	c := &pgCaller{t: t, conn: conn, in: p.wire(conn).(*pgWire)}
	c.send(sized(append([]byte{0, 3, 0, 0}, "user\x00postgres\x00database\x00postgres\x00\x00"...)))
	c.expect('R')
	return c
}

// sized returns body with its length in front.
func sized(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body)+4)), body...)
}

func pgMessage(kind byte, body string) []byte { return append([]byte{kind}, sized([]byte(body))...) }

func (c *pgCaller) send(messages ...[]byte) {
	c.t.Helper()
	if _, err := c.conn.Write(slices.Concat(messages...)); err != nil {
		c.t.Fatal(err)
	}
}

// expect reads a reply that begins with a message of this kind, and returns its bytes.
func (c *pgCaller) expect(kind byte) []byte {
	c.t.Helper()
	r, err := c.in.reply()
	if err != nil || r.raw[0] != kind {
		c.t.Fatalf("reply %q, %v; want one that begins with %c", r.raw, err, kind)
	}
	return r.raw
}

// ask runs a prepared statement with one parameter.
func (c *pgCaller) ask(statement, parameter string) {
	c.t.Helper()
	bind := "\x00" + statement + "\x00\x00\x00\x00\x01" + string(sizeless(parameter)) + "\x00\x00"
	c.send(pgMessage('B', bind), pgMessage('E', "\x00\x00\x00\x00\x00"), pgMessage('S', ""))
}

// sizeless returns a parameter with its length, which does not include itself, in front.
func sizeless(parameter string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(parameter))), parameter...)
}

// TestPostgres checks that the proxy passes all messages, reports statements and parameters, and
// loses the reply of one request that the server has carried out.
func TestPostgres(t *testing.T) {
	server := testsvc.Postgres(t)
	p := NewPostgres(t, server.Addr)
	var mu sync.Mutex
	var seen []string
	p.OnRequest(func(r Request) (a Action) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, strings.Join(r.Words, " "))
		if r.Has("lost") {
			a.Reply = Close
		}
		return a
	})
	c := dialPostgres(t, p)
	c.send(pgMessage('Q', "CREATE TABLE word (w text)\x00"))
	c.expect('C')
	const insert = "INSERT INTO word VALUES ($1)"
	c.send(pgMessage('P', "one\x00"+insert+"\x00\x00\x00"), pgMessage('S', ""))
	c.expect('1')
	c.ask("one", "kept")
	c.expect('2')
	c.send(pgMessage('Q', "LISTEN news\x00"))
	c.expect('C')
	server.Query("NOTIFY news, 'yes'")
	if told := c.expect('A'); !bytes.Contains(told, []byte("yes")) {
		t.Errorf("the notification is %q", told)
	}
	p.LoseMessages(true)
	server.Query("NOTIFY news, 'lost'")
	c.send(pgMessage('Q', "SELECT nothing\x00"))
	c.expect('E')
	c.ask("one", "lost")
	if r, err := c.in.reply(); err == nil {
		t.Errorf("the lost reply is %q", r.raw)
	}
	if got := server.Query("SELECT w FROM word ORDER BY w"); got != "kept\nlost" {
		t.Errorf("the table has %q", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"STARTUP", "CREATE TABLE word (w text)", "PREPARE", insert + " kept", "LISTEN news", "SELECT nothing", insert + " lost"}; !slices.Equal(seen, want) {
		t.Errorf("requests %q, want %q", seen, want)
	}
}

// TestPostgresLastWords checks that the client receives the server's reason for ending a
// connection.
func TestPostgresLastWords(t *testing.T) {
	server := testsvc.Postgres(t)
	p := NewPostgres(t, server.Addr)
	c := dialPostgres(t, p)
	server.Query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")
	if text := c.expect('E'); !bytes.Contains(text, []byte("57P01")) {
		t.Errorf("the end of the connection is %q", text)
	}
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(sized(binary.BigEndian.AppendUint32(nil, 80877103))); err != nil { // begin TLS
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("TLS is passed on, which the proxy cannot read")
	}
}
