package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// electTTL is the TTL of the candidates in these tests.
const electTTL = 2 * time.Second

// A ballot is three candidates whose commands write marks to one file.
type ballot struct {
	t     *testing.T
	file  string
	all   []*process
	idle  *idler
	proxy []*faultproxy.Proxy // of each candidate, if it has one
}

// elect starts a candidate for each URL. All but the first wait.
func elect(t *testing.T, urls []string, flags ...string) *ballot {
	t.Helper()
	b := &ballot{t: t, file: filepath.Join(t.TempDir(), "marks"), idle: newIdler(t)}
	for i, url := range urls {
		args := append([]string{"elect", "--ttl", electTTL.String(), "job"}, append(flags, "--", "workload", b.file)...)
		b.all = append(b.all, start(t, url, args...))
		if i == 0 {
			awaitMarks(t, b.file, 1)
		}
		eventually(t, "all others wait", func() bool { return show(t, url, "job").QueueLength == i })
	}
	return b
}

// leader returns the candidate whose command made the last mark, and that mark.
func (b *ballot) leader() (*process, mark) {
	b.t.Helper()
	m := last(b.t, b.file)
	for _, p := range b.all {
		if descends(b.t, m.pid, p.cmd.Process.Pid) {
			return p, m
		}
	}
	b.t.Fatalf("nobody has started process %d", m.pid)
	return nil, m
}

// descends reports whether a process is a grandchild of ancestor.
func descends(t *testing.T, pid, ancestor int) bool {
	t.Helper()
	for range 2 {
		out, err := exec.Command("ps", "-o", "ppid=", "-p", fmt.Sprint(pid)).Output()
		if err != nil {
			return false
		}
		if _, err := fmt.Sscan(string(out), &pid); err != nil {
			return false
		}
	}
	return pid == ancestor
}

// next waits until another process leads and makes marks with a greater token than m has, and
// returns its first mark.
func (b *ballot) next(m mark) (first mark) {
	b.t.Helper()
	eventually(b.t, "the next leads", func() bool {
		for _, n := range readMarks(b.t, b.file) {
			if n.token > m.token {
				first = n
				return true
			}
		}
		return false
	})
	return first
}

// neverTwo fails the test if the file has a mark with a smaller token than the mark before it. The
// marks are in the order in which they were written, as in a resource that checks tokens.
func (b *ballot) neverTwo() {
	b.t.Helper()
	marks := readMarks(b.t, b.file)
	for i := 1; i < len(marks); i++ {
		if marks[i].token < marks[i-1].token {
			b.t.Fatalf("two at work: token %d marks after %d", marks[i].token, marks[i-1].token)
		}
	}
}

// within fails the test if took is longer than limit, plus the time for which the machine stalled.
func (b *ballot) within(what string, took, limit time.Duration) {
	b.t.Helper()
	stalls := b.idle.sum()
	b.t.Logf("%s: %s, limit %s; the machine stalled for %s", what, took.Round(time.Millisecond), limit, stalls.Round(time.Millisecond))
	if took > limit+stalls {
		b.t.Errorf("%s took %s, want %s at most", what, took, limit)
	}
}

// An idler sleeps for a moment, again and again, and measures for how long the machine did not let
// it run.
type idler struct {
	ask  chan chan time.Duration
	done chan struct{}
}

func newIdler(t *testing.T) *idler {
	i := &idler{make(chan chan time.Duration), make(chan struct{})}
	go func() { // ends with the test
		const nap = 5 * time.Millisecond
		var sum time.Duration
		for {
			began := time.Now()
			select {
			case answer := <-i.ask:
				answer <- sum
				sum = 0
			case <-i.done:
				return
			case <-time.After(nap):
				if late := time.Since(began) - nap; late > 2*time.Millisecond {
					sum += late
				}
			}
		}
	}()
	t.Cleanup(func() { close(i.done) })
	return i
}

// sum returns for how long the machine has stalled since the last call.
func (i *idler) sum() time.Duration {
	answer := make(chan time.Duration)
	i.ask <- answer
	return <-answer
}

func threeTimes(url string) []string { return []string{url, url, url} }

// TestElectHandsOver ends one leader after the other. The next candidate must lead right after the
// leader's command has ended, and not before.
func TestElectHandsOver(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		b := elect(t, threeTimes(store))
		least := patience // the least of two: other tests may use the processors
		for range 2 {
			p, m := b.leader()
			p.signal(syscall.SIGTERM)
			p.want(128 + int(syscall.SIGTERM))
			first, end := b.next(m), endOf(t, b.file, m.pid)
			if !first.at.After(end) {
				t.Errorf("the next was at work %s before the end", end.Sub(first.at))
			}
			least = min(least, first.at.Sub(end))
		}
		b.within("a hand-over", least, 100*time.Millisecond+markEvery)
		b.neverTwo()
	})
}

// markEvery is the longest time between a command's last mark and its end.
const markEvery = 10 * time.Millisecond

// endOf returns when a process made its last mark.
func endOf(t *testing.T, file string, pid int) (end time.Time) {
	t.Helper()
	for _, m := range readMarks(t, file) {
		if m.pid == pid {
			end = m.at
		}
	}
	return end
}

// TestElectWhenTheLeaderFails kills, stops or cuts off the leader. The next candidate must lead
// within the TTL and 250 ms, and never two at a time. A leader that was not killed stands for
// election again.
func TestElectWhenTheLeaderFails(t *testing.T) {
	t.Parallel()
	faults := map[string]func(t *testing.T, b *ballot, p *process, i int) (heal func()){
		"killed": func(t *testing.T, _ *ballot, p *process, _ int) func() {
			p.signal(syscall.SIGKILL)
			return func() {}
		},
		"stopped": func(t *testing.T, _ *ballot, p *process, _ int) func() {
			p.signal(syscall.SIGSTOP)
			return func() { p.signal(syscall.SIGCONT) }
		},
		"cut off": func(t *testing.T, b *ballot, _ *process, i int) func() {
			b.proxy[i].BlackHole()
			return b.proxy[i].Heal
		},
	}
	for fault, strike := range faults {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			server := testsvc.Redis(t)
			var proxies []*faultproxy.Proxy
			var urls []string
			for range 3 {
				p := faultproxy.New(t, server.Addr)
				proxies, urls = append(proxies, p), append(urls, "redis://"+p.Addr())
			}
			b := elect(t, urls)
			b.proxy = proxies
			p, m := b.leader()
			i := 0
			for b.all[i] != p {
				i++
			}
			b.idle.sum()
			struck := time.Now()
			heal := strike(t, b, p, i)
			first := b.next(m)
			b.within(fault+": the next leads", first.at.Sub(struck), electTTL+250*time.Millisecond)
			heal()
			if fault != "killed" {
				eventually(t, "the old leader stands again", func() bool { return show(t, server.URL, "job").QueueLength == 2 })
				if text := read(t, p.stderr); !strings.Contains(text, "standing for election again") {
					t.Errorf("its message is %q", text)
				}
			}
			b.neverTwo()
		})
	}
}

// TestElectWhenTheStoreRestarts restarts the store with its data. Whether the leader's lease
// outlasts the restart or not, never two lead, and soon one does.
func TestElectWhenTheStoreRestarts(t *testing.T) {
	t.Parallel()
	for _, away := range []time.Duration{electTTL / 4, 2 * electTTL} {
		t.Run(fmt.Sprint("for ", away), func(t *testing.T) {
			t.Parallel()
			server := testsvc.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
			b := elect(t, threeTimes(server.URL))
			_, m := b.leader()
			b.idle.sum()
			server.Kill()
			time.Sleep(away)
			server.Restart()
			back := time.Now()
			if away > electTTL {
				first := b.next(m)
				b.within("the next leads", first.at.Sub(back), electTTL+250*time.Millisecond)
			}
			eventually(t, "one works and two wait", func() bool {
				return show(t, server.URL, "job").QueueLength == 2 && last(t, b.file).at.After(back.Add(electTTL))
			})
			b.neverTwo()
		})
	}
}

// TestElectLostLead breaks the lead. The leader's command is stopped, another candidate leads, and
// the old leader stands for election again.
func TestElectLostLead(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		b := elect(t, threeTimes(store))
		p, m := b.leader()
		wantRun(t, 0, store, "break", "job", "--reason", "a test")
		b.next(m)
		p.awaitStderr("broken by")
		p.awaitStderr("standing for election again")
		eventually(t, "it stands again", func() bool { return show(t, store, "job").QueueLength == 2 })
		wantGone(t, []int{m.pid})
	})
}

// TestElectLeavesNothingBehind checks that the lead is not released while any process of the
// command is left, even one in a session of its own.
func TestElectLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	store, dir := sqlite(t), t.TempDir()
	file := filepath.Join(dir, "marks")
	p := start(t, store, "elect", "job", "--", "sh", "-c", "setsid workload -for 2s "+file+" & exit 3")
	awaitMarks(t, file, 1)
	rival := filepath.Join(dir, "rival")
	wantRun(t, 0, store, "run", "-w", "20", "job", "--", "workload", "-for", "50ms", rival)
	wantAfter(t, rival, last(t, file))
	p.signal(syscall.SIGTERM)
	p.wait()
}

// TestElectManyTerms runs many commands in one process, each of which leaves an orphan for a
// moment. No orphan must be mistaken for a process of another command.
func TestElectManyTerms(t *testing.T) {
	t.Parallel()
	store, dir := sqlite(t), t.TempDir()
	file := filepath.Join(dir, "terms")
	p := start(t, store, "elect", "--pause", "20ms", "job", "--", "sh", "-c", "(sleep 0.05 &) ; echo term >>"+file+"; exit 1")
	eventually(t, "eight terms", func() bool {
		data, _ := os.ReadFile(file)
		return strings.Count(string(data), "term") >= 8
	})
	p.signal(syscall.SIGTERM)
	p.wait()
}
