//go:build unix

package clienttest

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestProxyDies checks nginx with default settings on the server's host. When it ends, a client
// that holds a lock by a stream through it stops its command before another client has the lock,
// even if the command ignores TERM.
func TestProxyDies(t *testing.T) {
	t.Parallel()
	redis := testsvc.Redis(t)
	for _, l := range languages(t) {
		if !strings.HasSuffix(l.name, "-stream") {
			continue
		}
		for how, end := range map[string]func(*testsvc.Server){"killed": (*testsvc.Server).Kill, "shut down": (*testsvc.Server).ShutDown} {
			t.Run(l.name+"/"+how, func(t *testing.T) {
				t.Parallel()
				s, next := startServer(t, redis.URL), direct(t, redis.URL)
				proxy := testsvc.Nginx(t, "location / { proxy_pass "+s.url+"; }")
				beats := filepath.Join(t.TempDir(), "beats")
				command := l.start(t, "http://"+proxy.Addr, "run", t.Name(), "12", "sh", "-c",
					`trap "" TERM; for i in $(seq 2000); do echo beat >>"$0" || exit; sleep 0.02; done`, beats)
				drivertest.Eventually(t, "the command runs", func() bool { return size(beats) > 0 })
				end(proxy)
				time.Sleep(wait(t, next, t.Name()))
				was := size(beats)
				time.Sleep(200 * time.Millisecond)
				if is := size(beats); is != was {
					t.Errorf("%s: its command still runs when another has the lock", l.name)
				}
				command.wantEnd("lost")
			})
		}
	}
}

// TestDirect checks that the lock of a killed process is free at once if the process declared its
// connection direct.
func TestDirect(t *testing.T) {
	t.Parallel()
	redis := testsvc.Redis(t)
	s, next := startServer(t, redis.URL), direct(t, redis.URL)
	l := language{"python-direct", 60, []string{"env", "STREAM=direct", "python3", "-B", tree + "python/demo.py"}}
	j := l.start(t, s.url, "hold", t.Name(), "60")
	j.wantLine("acquired")
	if err := j.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	paused := wait(t, next, t.Name())
	if took := time.Since(killed); took > 10*time.Second+paused { // otherwise it is free after 12 s
		t.Errorf("free after %s", took)
	}
}
