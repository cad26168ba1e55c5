//go:build unix

package testsvc

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// send sends one command as text, and returns the first line of the reply.
func send(addr, command string, timeout time.Duration) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, timeout)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(conn, "%s\r\n", command); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(line), err
}

func wantReply(t *testing.T, addr, command, want string) {
	t.Helper()
	got, err := send(addr, command, 10*time.Second)
	if err != nil || got != want {
		t.Fatalf("%s: got %q, %v; want %q", command, got, err, want)
	}
}

func TestServerObeys(t *testing.T) {
	s := Redis(t)
	wantReply(t, s.Addr, "PING", "+PONG")
	wantReply(t, s.Addr, "SET k v", "+OK")

	s.Stop()
	if got, err := send(s.Addr, "PING", 100*time.Millisecond); err == nil {
		t.Errorf("a stopped server answers %q", got)
	}
	s.Cont()
	wantReply(t, s.Addr, "EXISTS k", ":1")

	s.Kill()
	if got, err := send(s.Addr, "PING", time.Second); err == nil {
		t.Errorf("a killed server answers %q", got)
	}
	s.Restart()
	wantReply(t, s.Addr, "EXISTS k", ":0")
}

func TestExtraArguments(t *testing.T) {
	s := Redis(t, "--requirepass", "secret")
	wantReply(t, s.Addr, "PING", "-NOAUTH Authentication required.")
}

func TestServerEndsWithItsTest(t *testing.T) {
	var frozen int
	t.Run("frozen", func(t *testing.T) {
		s := Redis(t)
		frozen = s.PID()
		s.Stop()
	})
	if err := syscall.Kill(frozen, 0); err != syscall.ESRCH {
		t.Errorf("the frozen server is still there: %v", err)
	}
}

func TestBadArgumentIsReported(t *testing.T) {
	program, err := LookServer()
	if err != nil {
		t.Fatal(err)
	}
	_, err = startCommand(ownCommand(program, "--no-such-option", "1"), "Ready")
	if err == nil || !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("got %v, want an error with the server's own words", err)
	}
}

// TestServerDiesWithTheTestProcess checks that a server ends when its test process is killed. The
// test starts a second copy of this test binary, which starts a server and freezes it.
func TestServerDiesWithTheTestProcess(t *testing.T) {
	const role = "TESTSVC_VICTIM"
	if os.Getenv(role) != "" {
		s := Redis(t)
		s.Stop()
		fmt.Printf("victim server %d\n", s.PID())
		select {} // until killed
	}
	if dieWithParent() == nil {
		t.Log("this system has no parent death signal")
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestServerDiesWithTheTestProcess$")
	cmd.Env = append(os.Environ(), role+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()
	pid := 0
	for s := bufio.NewScanner(out); pid == 0 && s.Scan(); {
		if _, text, ok := strings.Cut(s.Text(), "victim server "); ok {
			if pid, err = strconv.Atoi(text); err != nil {
				t.Fatal(err)
			}
		}
	}
	if pid == 0 {
		t.Fatal("the victim started no server")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); alive(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("server %d outlives the test process", pid)
		}
	}
}

// alive reports whether a process runs. A zombie process does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// TestServerByAnyName checks that Redis uses valkey-server if there is no redis-server.
func TestServerByAnyName(t *testing.T) {
	program, err := LookServer()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if path, err := LookServer(); err == nil {
		t.Errorf("found %s on an empty PATH", path)
	}
	for _, name := range []string{"valkey-server", "redis-server"} {
		link := filepath.Join(dir, name)
		if err := os.Symlink(program, link); err != nil {
			t.Fatal(err)
		}
		if path, err := LookServer(); err != nil || path != link {
			t.Errorf("found %q, %v; want %s", path, err, link)
		}
		if _, err := Redis(t).Do("PING"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
