package systest

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/internal/faultproxy"
)

// A replay sends the requests that an engine sent, or those of a minimal script for the same
// purpose, on one connection. The server then does nothing else, and the client's time is not
// measured.
type replay struct {
	name    string
	each    int       // how many operations measure has
	prepare []command // sent first, and not measured
	measure []command
}

// A command is a request, and the number with which its reply must begin, or the constant token.
type command struct {
	words []string
	built rueidis.Completed
	want  int64
}

// record returns the requests that an engine sends over l during run, each with the wanted number
// of its reply.
func (l *link) record(t *testing.T, run func(), want ...int64) (commands []command) {
	t.Helper()
	var mu sync.Mutex
	var sent [][]string
	l.OnRequest(func(r faultproxy.Request) faultproxy.Action {
		if strings.HasPrefix(r.Command(), "EVAL") {
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, r.Words)
		}
		return faultproxy.Action{}
	})
	run()
	l.OnRequest(nil)
	mu.Lock()
	defer mu.Unlock()
	for i, words := range sent {
		commands = append(commands, l.store.command(want[i%len(want)], words...))
	}
	return commands
}

// command returns a request that can be sent repeatedly.
func (s *store) command(want int64, words ...string) command {
	return command{words, s.plain.B().Arbitrary(words...).Build().Pin(), want}
}

// script loads a script, and returns its hash.
func (s *store) script(t *testing.T, text string) string {
	t.Helper()
	sha, err := s.do(t, "SCRIPT", "LOAD", text).ToString()
	if err != nil {
		t.Fatal(err)
	}
	return sha
}

// together is how many requests of a replay are sent at a time, as if by so many goroutines.
const together = 32

// send sends commands, and reports whether all replies are as wanted.
func (s *store) send(t *testing.T, commands []command) bool {
	t.Helper()
	for some := range slices.Chunk(commands, together) {
		built := make([]rueidis.Completed, len(some))
		for i, c := range some {
			built[i] = c.built
		}
		for i, r := range s.plain.DoMulti(context.Background(), built...) {
			reply, err := r.ToAny()
			if err != nil {
				t.Fatalf("%.80q: %v", some[i].words, err)
			}
			if got := firstNumber(reply); got != some[i].want && (some[i].want != token || got <= 1) {
				t.Logf("%.300q answers %v", some[i].words, reply)
				return false
			}
		}
	}
	return true
}

// token means that a reply must begin with a fencing token.
const token = -2

// firstNumber returns the first number of a nested reply, or -1.
func firstNumber(reply any) int64 {
	switch r := reply.(type) {
	case int64:
		return r
	case []any:
		if len(r) > 0 {
			return firstNumber(r[0])
		}
	}
	return -1
}

// prepared deletes all locks and sends the requests that prepare a replay.
func (s *store) prepared(t *testing.T, r replay) bool {
	t.Helper()
	s.do(t, "FLUSHALL")
	return s.send(t, r.prepare)
}

// bytes returns how many bytes a replay sends per operation.
func (r replay) bytes() (sum int) {
	digits := func(n int) int { return len(strconv.Itoa(n)) }
	for _, c := range r.measure {
		sum += len("*\r\n") + digits(len(c.words))
		for _, w := range c.words {
			sum += len("$\r\n\r\n") + digits(len(w)) + len(w)
		}
	}
	return sum / r.each
}

// median returns the median of all, or 0 if all is empty.
func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}
