//go:build unix

package clienttest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestExclusion checks that clients in all languages exclude each other: they increment one number
// in a file.
func TestExclusion(t *testing.T) {
	const each = 15
	url := memoryServer(t)
	file := filepath.Join(t.TempDir(), "number")
	if err := os.WriteFile(file, []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, l := range languages(t) {
		j := l.start(t, url, "count", "number", file, strconv.Itoa(each))
		all.Go(func() { j.wantEnd("") })
	}
	all.Wait()
	got, err := os.ReadFile(file)
	if want := strconv.Itoa(each * len(languages(t))); err != nil || strings.TrimSpace(string(got)) != want {
		t.Errorf("the number is %q, %v; want %s", got, err, want)
	}
}

// TestTokenInEnvironment checks that a command finds the token of its lease in its environment, and
// that the client exits with the command's status.
func TestTokenInEnvironment(t *testing.T) {
	url := memoryServer(t)
	last := 0
	for _, l := range languages(t) {
		j := l.start(t, url, "run", `a "job"`, "12", "sh", "-c", `echo "$HOLDFAST_NAME=$HOLDFAST_FENCING_TOKEN"; exit 3`)
		name, token, _ := strings.Cut(j.line(), "=")
		got, err := strconv.Atoi(token)
		if name != `a "job"` || err != nil || got <= last {
			t.Errorf("%s: the environment has %q and %q, want a token above %d", l.name, name, token, last)
		}
		last = got
		if code := j.end(); code != 3 {
			t.Errorf("%s: the status is %d, want that of the command: %s", l.name, code, j.said.String())
		}
	}
}

// TestRefusals checks that clients report the code of a refusal.
func TestRefusals(t *testing.T) {
	url := memoryServer(t)
	for _, l := range languages(t) {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			holder := l.start(t, url, "hold", l.name, "12")
			holder.wantLine("acquired")
			l.start(t, url, "take", l.name).wantEnd("lock-held")
			holder.finish()
			holder.wantLine("released")
			holder.wantEnd("")
			l.start(t, url, "take", l.name).wantLine("acquired")
			l.start(t, url, "take", "\u202e").wantEnd("invalid")
		})
	}
}

// TestLossEndsTheWork checks that a client stops its work, and its command, when no server answers
// any more, before the store grants the lock to another client.
func TestLossEndsTheWork(t *testing.T) {
	redis := testsvc.Redis(t)
	t.Run("curl", curlLoss)
	for _, l := range languages(t) {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			ttl := strconv.Itoa(l.ttl)
			s, next := startServer(t, redis.URL), direct(t, redis.URL)
			beats := filepath.Join(t.TempDir(), "beats")
			work := l.start(t, s.url, "hold", l.name+"/work", ttl)
			command := l.start(t, s.url, "run", l.name+"/command", ttl, "sh", "-c", `for i in $(seq 600); do echo beat >>"$0" || exit; sleep 0.02; done`, beats)
			work.wantLine("acquired")
			drivertest.Eventually(t, "the command runs", func() bool { return size(beats) > 0 })
			s.freeze()

			var both sync.WaitGroup
			both.Go(func() {
				paused := wait(t, next, l.name+"/work")
				select {
				case <-work.ended:
				case <-time.After(2 * paused):
					t.Errorf("%s: still at work when another has the lock", l.name)
				}
				work.wantEnd("lost")
			})
			both.Go(func() {
				paused := wait(t, next, l.name+"/command")
				time.Sleep(paused)
				was := size(beats)
				time.Sleep(200 * time.Millisecond)
				if is := size(beats); is != was {
					t.Errorf("%s: its command still runs when another has the lock", l.name)
				}
				command.wantEnd("lost")
			})
			both.Wait()
		})
	}
}

// TestKilledScript checks that the command of a killed shell script is stopped before the lock is
// free.
func TestKilledScript(t *testing.T) {
	redis := testsvc.Redis(t)
	for _, l := range languages(t) {
		if !strings.HasPrefix(l.name, "shell") {
			continue
		}
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			s, next := startServer(t, redis.URL), direct(t, redis.URL)
			beats := filepath.Join(t.TempDir(), "beats")
			script := l.start(t, s.url, "run", l.name, strconv.Itoa(l.ttl), "sh", "-c", `for i in $(seq 600); do echo beat >>"$0" || exit; sleep 0.02; done`, beats)
			drivertest.Eventually(t, "the command runs", func() bool { return size(beats) > 0 })
			if err := script.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			wait(t, next, l.name)
			was := size(beats)
			time.Sleep(200 * time.Millisecond)
			if is := size(beats); is != was {
				t.Errorf("%s: its command still runs when another has the lock", l.name)
			}
		})
	}
}

// curlLoss checks curl with the options from docs/reference/hold-stream.md. It ends within the time
// for which a stream of 30 s may be quiet, and not between two lines.
func curlLoss(t *testing.T) {
	t.Parallel()
	const ping, quiet = 5 * time.Second, 10 * time.Second
	page, err := os.ReadFile("../../docs/reference/hold-stream.md")
	if err != nil {
		t.Fatal(err)
	}
	options := regexp.MustCompile(`(?m)^curl (.*) \\$`).FindSubmatch(page)
	if options == nil {
		t.Fatal("the page has no options for curl")
	}
	heard := make(chan time.Time, 1)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range 2 {
			fmt.Fprintln(w, `{"event":"ping","at_ms":5000,"expires_in_ms":29698}`)
			_ = http.NewResponseController(w).Flush()
			time.Sleep(ping)
		}
		heard <- time.Now().Add(-ping)
		<-r.Context().Done()
	}))
	t.Cleanup(h.Close)
	pause := testsvc.WatchPauses()
	err = exec.Command("curl", append(strings.Fields(string(options[1])), "--silent", h.URL)...).Run()
	end, paused := time.Now(), pause()
	select {
	case last := <-heard:
		if took := end.Sub(last); err == nil || took < ping || took > quiet+paused {
			t.Errorf("curl ends %s after the last line (the machine has paused for %s): %v", took, paused, err)
		}
	default:
		t.Errorf("curl ends between two lines: %v", err)
	}
}

func size(file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return info.Size()
}

// wait waits for a lock, and returns how long the machine paused during the wait.
func wait(t *testing.T, c *holdfast.Client, name string) time.Duration {
	pause := testsvc.WatchPauses()
	lease, err := c.Acquire(t.Context(), name, &holdfast.AcquireOptions{MaxWait: patience})
	paused := pause()
	if err != nil {
		t.Errorf("the lock of a client that is cut off cannot be had: %v", err)
		return paused
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	return paused
}

// TestServerDies checks that when one of two servers is killed, a client continues at the other
// server with the same lease and token, for longer than the TTL.
func TestServerDies(t *testing.T) {
	t.Parallel()
	redis := testsvc.Redis(t)
	for _, l := range languages(t) {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			ttl := time.Duration(l.ttl) * time.Second // a busy machine may delay the lines of a stream
			a, b, look := startServer(t, redis.URL), startServer(t, redis.URL), direct(t, redis.URL)
			j := l.start(t, a.url+","+b.url, "hold", l.name, strconv.Itoa(l.ttl))
			token, err := strconv.ParseUint(j.wantLine("acquired"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			a.kill()
			for end := time.Now().Add(ttl + ttl/4); time.Now().Before(end); time.Sleep(ttl / 10) {
				lock, err := look.Inspect(t.Context(), l.name)
				if err != nil {
					t.Fatal(err)
				}
				if len(lock.Holders) != 1 || lock.Holders[0].Token != token {
					t.Fatalf("%s: the lock is %+v, want that the lease with token %d lives on", l.name, lock.Holders, token)
				}
			}
			j.finish()
			j.wantLine("released")
			j.wantEnd("")
		})
	}
}

// TestOnce checks that of concurrent clients in several languages one does the work, and all get
// its result. The clients in shell cannot produce such a result.
func TestOnce(t *testing.T) {
	url := memoryServer(t)
	var jobs []*job
	for _, l := range languages(t) {
		if !strings.HasPrefix(l.name, "shell") {
			jobs = append(jobs, l.start(t, url, "once", "invoice/2026 \"a\"", l.name))
		}
	}
	workers, results := 0, map[string]int{}
	for _, j := range jobs {
		for line := j.line(); line != ""; line = j.line() {
			what, rest, _ := strings.Cut(line, " ")
			if what == "working" {
				workers++
			} else {
				results[rest]++
			}
		}
		j.wantEnd("")
	}
	if workers != 1 || len(results) != 1 {
		t.Errorf("%d have done the work, and the results are %v; want one of each", workers, results)
	}
}

// TestOnceInTheShell checks that the next caller runs a command again only if the command failed.
func TestOnceInTheShell(t *testing.T) {
	url := memoryServer(t)
	for _, c := range []struct{ status, output string }{{"3", "runs"}, {"0", "runs"}, {"0", ""}} {
		cmd := exec.Command("sh", tree+"shell/once.sh", "job", "sh", "-c", `echo runs; exit "$0"`, c.status)
		cmd.Env = append(os.Environ(), "HOLDFAST_URLS="+url)
		out, _ := cmd.Output() // the status is checked below
		if got := strconv.Itoa(cmd.ProcessState.ExitCode()); got != c.status || strings.TrimSpace(string(out)) != c.output {
			t.Errorf("status %s and output %q, want %s and %q", got, out, c.status, c.output)
		}
	}
}
