//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// redis sends one command on a connection of its own, like a client that does not know holdfast,
// and returns the reply as text. Nil is "(nil)".
func redis(t *testing.T, server *testsvc.Server, command ...string) string {
	t.Helper()
	conn, err := net.Dial("tcp", server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	var request strings.Builder
	fmt.Fprintf(&request, "*%d\r\n", len(command))
	for _, word := range command {
		fmt.Fprintf(&request, "$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := io.WriteString(conn, request.String()); err != nil {
		t.Fatal(err)
	}
	answer, err := readAnswer(bufio.NewReader(conn))
	if err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	return answer
}

// readAnswer reads a simple string, an integer or a bulk string.
func readAnswer(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	kind, text := line[0], strings.TrimSpace(line[1:])
	switch kind {
	case '+', ':':
		return text, nil
	case '$':
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return "(nil)", err
		}
		bulk := make([]byte, n)
		_, err = io.ReadFull(r, bulk)
		return string(bulk), err
	}
	return "", fmt.Errorf("answer %q", line)
}

// redisInt is redis for a reply that is a number.
func redisInt(t *testing.T, server *testsvc.Server, command ...string) int {
	t.Helper()
	n, err := strconv.Atoi(redis(t, server, command...))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestPlainClients checks that holdfast and clients that use only SET NX PX exclude each other.
func TestPlainClients(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)

	if got := redis(t, server, "SET", "job", "anything", "NX", "PX", "60000"); got != "OK" {
		t.Fatalf("SET NX: %s", got)
	}
	wantRun(t, 75, server.URL, "run", "-n", "job", "--", "true")
	wantRun(t, 0, server.URL, "check", "job")
	if s := show(t, server.URL, "job"); !s.Held || len(s.Holders) != 1 || !s.Holders[0].Foreign {
		t.Errorf("a plain client's lock is shown as %+v", s)
	}
	waiter := start(t, server.URL, "run", "-v", "-w", "20", "job", "--", "true")
	waiter.awaitStderr("waiting")
	redis(t, server, "DEL", "job")
	waiter.want(0)

	redis(t, server, "SET", "forever", "anything")
	wantRun(t, 75, server.URL, "run", "-n", "forever", "--", "true")
	if s := show(t, server.URL, "forever"); !s.Held || len(s.Holders) != 1 || s.Holders[0].ExpiresInMS != nil {
		t.Errorf("a lock with no expiry is shown as %+v", s)
	}

	holder := hold(t, server.URL, "job")
	if got := redis(t, server, "SET", "job", "anything", "NX", "PX", "60000"); got != "(nil)" {
		t.Errorf("SET NX while holdfast holds the lock: %s", got)
	}
	holder.finish()
	holder.want(0)
	if got := redis(t, server, "SET", "job", "anything", "NX", "PX", "60000"); got != "OK" {
		t.Errorf("SET NX after holdfast: %s", got)
	}
}

// TestPrefix checks that the prefix in the URL is the beginning of the key.
func TestPrefix(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	holder := hold(t, server.URL+"/?prefix=app:", "job")
	if got := redis(t, server, "EXISTS", "app:job"); got != "1" {
		t.Errorf("EXISTS app:job: %s", got)
	}
	wantRun(t, 75, server.URL+"/?prefix=app:", "run", "-n", "job", "--", "true")
	wantRun(t, 75, server.URL, "run", "-n", "app:job", "--", "true")
	wantRun(t, 0, server.URL, "run", "-n", "job", "--", "true")
	holder.finish()
	holder.want(0)
}

// TestOtherKind checks that a key which is not a lock is left alone.
func TestOtherKind(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	redis(t, server, "RPUSH", "job", "a", "b")
	wantRun(t, 78, server.URL, "run", "-n", "job", "--", "true")
	wantRun(t, 78, server.URL, "run", "-w", "5", "job", "--", "true")
	if got := redis(t, server, "LLEN", "job"); got != "2" {
		t.Errorf("LLEN job: %s", got)
	}
}

// TestCredentials checks the status for a missing or wrong password, and that neither the output
// nor the environment of the command contains the password.
func TestCredentials(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t, "--requirepass", "s3cret")
	for _, user := range []string{"", ":wr0ng@", "nobody:wr0ng@"} {
		for _, command := range [][]string{
			{"run", "job", "--", "true"}, {"show", "job"}, {"check", "job"}, {"ls"},
		} {
			if stderr := wantRun(t, 77, "redis://"+user+server.Addr, command...); strings.Contains(stderr, "wr0ng") {
				t.Errorf("%v: %q has the password", command, stderr)
			}
		}
	}
	status, stdout, stderr := run(t, "redis://:s3cret@"+server.Addr, "run", "-v", "job", "--", "sh", "-c", "echo $HOLDFAST_LOCK_STORE")
	if status != 0 || !strings.HasPrefix(stdout, server.URL) || strings.Contains(stdout+stderr, "s3cret") {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
}

// TestUnreachable checks the status for a server that is gone or does not answer.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	server.Stop()
	frozen := []*process{
		start(t, server.URL, "run", "-n", "job", "--", "true"),
		start(t, server.URL, "run", "-w", "1", "job", "--", "true"),
		start(t, server.URL, "show", "job"),
	}
	for _, p := range frozen {
		p.want(69)
	}
	server.Kill()
	for _, command := range [][]string{
		{"run", "job", "--", "true"}, {"run", "-n", "job", "--", "true"}, {"show", "job"}, {"check", "job"}, {"ls"},
	} {
		wantRun(t, 69, server.URL, command...)
	}
}

// TestReadOnlyReplica checks that a server that cannot grant locks counts as unavailable.
func TestReadOnlyReplica(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	redis(t, server, "REPLICAOF", "127.0.0.1", "1")
	wantRun(t, 69, server.URL, "run", "-n", "job", "--", "true")
	wantRun(t, 69, server.URL, "run", "-w", "1", "job", "--", "true")
}

// TestMissingRights checks the status for a user who has no right to the key.
func TestMissingRights(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	redis(t, server, "ACL", "SETUSER", "guest", "on", ">secret", "~other*", "&*", "+@all")
	store := "redis://guest:secret@" + server.Addr
	wantRun(t, 77, store, "run", "-n", "job", "--", "true")
	wantRun(t, 77, store, "run", "-w", "5", "job", "--", "true")
	wantRun(t, 77, store, "show", "job")
	if got := redis(t, server, "EXISTS", "job"); got != "0" {
		t.Errorf("EXISTS job: %s", got)
	}
}
