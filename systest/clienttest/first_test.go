//go:build unix

package clienttest

import (
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// mostLines is how many lines a program may print if it does not catch a client's error.
const mostLines = 12

// TestWrongURL checks that an invalid URL, and a TTL that is not in seconds, are refused before any
// request.
func TestWrongURL(t *testing.T) {
	address := closedAddress(t)
	for _, l := range languages(t) {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			cases := []struct{ url, ttl, want string }{
				{address, "10", "is not a URL of a holdfast server: want http://HOST:PORT"},
				{"http://" + address, "30000", "a lease is renewed"},
			}
			if l.name == "shell-stream" { // with a shorter TTL, its quiet time would pass between two lines
				cases = append(cases, struct{ url, ttl, want string }{"http://" + address, "11", "TTL=11: want 12 or more"})
			}
			for _, c := range cases {
				if strings.HasPrefix(l.name, "shell") && c.ttl == "30000" {
					c.want = "TTL=30000: want seconds, from 1 to 3600"
				}
				j := l.start(t, c.url, "hold", "a", c.ttl)
				j.finish()
				status := j.end()
				if said := j.stderr(); status == 0 || !strings.Contains(said, c.want) || c.ttl == "10" && lines(said) > mostLines {
					t.Errorf("%s, TTL %s: status %d\n%s\nwant %q", c.url, c.ttl, status, said, c.want)
				}
			}
		})
	}
}

// programs acquire a lock and catch no error.
var programs = map[string]struct {
	file, text string
	command    []string
}{
	"python":     {"first.py", "import holdfast\nholdfast.Client({url}).lock('a')\n", []string{"env", "PYTHONPATH=" + tree + "python", "python3", "-B"}},
	"stream":     {"first.py", "import holdfast\nholdfast.Client({url}).hold('a')\n", []string{"env", "PYTHONPATH=" + tree + "python", "python3", "-B"}},
	"javascript": {"first.mjs", "import { Client } from 'CLIENTS/javascript/holdfast.mjs'\nawait new Client({url}).lock('a')\n", []string{"node"}},
	"java": {"First.java", "import java.time.Duration;\nclass First { public static void main(String[] args) throws Exception { " +
		"new Holdfast({url}).withLock(\"a\", Duration.ofSeconds(30), Duration.ZERO, lease -> null); } }\n", []string{"java", "-cp", "CLASSES"}},
	"shell": {"first.sh", "exec CLIENTS/shell/with-lock.sh a true\n", []string{"env", "HOLDFAST_URLS={address}", "sh"}},
}

// TestFirstConnectionRefused checks that if no server answers at the first request, a client
// reports that within a second, with the URL and in a few lines.
func TestFirstConnectionRefused(t *testing.T) {
	classes, err := javaClasses()
	if err != nil {
		t.Fatal(err)
	}
	clients, err := filepath.Abs(tree)
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + closedAddress(t)
	for name, p := range programs {
		t.Run(name, func(t *testing.T) {
			there := strings.NewReplacer("CLIENTS", clients, "CLASSES", classes, "{address}", address, "{url}", `"`+address+`"`)
			file := filepath.Join(t.TempDir(), p.file)
			run := func(text string) (out string, took time.Duration, err error) {
				if err := os.WriteFile(file, []byte(there.Replace(text)), 0o600); err != nil {
					t.Fatal(err)
				}
				argv := append(strings.Split(there.Replace(strings.Join(p.command, "\n")), "\n"), file)
				began := time.Now()
				said, err := exec.Command(argv[0], argv[1:]...).CombinedOutput() //nolint:gosec // the program of a language
				return string(said), time.Since(began), err
			}
			// A run with a wrong URL shows how long the language takes to start on this machine.
			_, start, _ := run(strings.NewReplacer("{url}", `"none"`, "CLIENTS/shell/with-lock.sh", "env HOLDFAST_URLS=none CLIENTS/shell/with-lock.sh").Replace(p.text))
			pause := testsvc.WatchPauses()
			said, took, err := run(p.text)
			if paused := pause(); took > 2*start+time.Second+paused {
				t.Errorf("it takes %s, and a wrong URL %s (the machine has paused for %s)", took, start, paused)
			}
			if err == nil || !strings.Contains(said, address) || !strings.Contains(said, "no server has answered") || lines(said) > mostLines {
				t.Errorf("%v\n%s", err, said)
			}
		})
	}
}

// TestClientsSayWhoTheyAre checks that the server shows the host, the process and the program of
// each holder.
func TestClientsSayWhoTheyAre(t *testing.T) {
	server := memoryServer(t)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range languages(t) {
		j := l.start(t, server, "hold", l.name, "12")
		j.wantLine("acquired")
		reply, err := http.Get(server + "/v1/locks/" + url.PathEscape(l.name))
		if err != nil {
			t.Fatal(err)
		}
		var lock struct {
			Holders []struct {
				Host, Program string
				PID           int
			}
		}
		err = json.NewDecoder(reply.Body).Decode(&lock)
		_ = reply.Body.Close()
		if err != nil || len(lock.Holders) != 1 {
			t.Fatalf("%s: %+v, %v", l.name, lock, err)
		}
		if h := lock.Holders[0]; !strings.HasPrefix(h.Host, strings.Split(host, ".")[0]) || h.PID <= 0 || h.Program == "" {
			t.Errorf("%s: the holder is %+v, want host %s, a process and a program", l.name, h, host)
		}
		j.finish()
		j.wantEnd("")
	}
}

// closedAddress returns an address at which no server listens.
func closedAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// lines counts lines with text.
func lines(text string) (n int) {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			n++
		}
	}
	return n
}
