package render

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// The locks of these tests.
var (
	web3 = driver.Holder{Host: "web-3", PID: 812, Reason: "nightly", Labels: map[string]string{"b": "2", "a": "1"}}
	web4 = driver.Holder{Host: "web-4", PID: 77}

	exclusive = driver.Lock{
		Name:    "job",
		Holders: []driver.Holding{{LeaseID: "1", Token: 41, Holder: web3, ExpiresIn: 12 * time.Second}},
		Queue: []driver.Waiting{
			{LeaseID: "2", Holder: web4, Since: 3240 * time.Millisecond, ExpiresIn: 4 * time.Second},
			{LeaseID: "3", Mode: driver.Shared, Holder: web3, Since: 90 * time.Second, ExpiresIn: time.Second},
		},
		QueueLength: 2, LastToken: 41,
	}
	shared = driver.Lock{
		Name: "read", Mode: driver.Shared, LastToken: 42,
		Holders: []driver.Holding{
			{LeaseID: "1", Token: 41, Holder: web3, ExpiresIn: time.Minute},
			{LeaseID: "2", Token: 42, Holder: web4, ExpiresIn: 1500 * time.Millisecond},
		},
	}
	semaphore = driver.Lock{
		Name: "slots", Mode: driver.Semaphore, Limit: 4,
		Holders: []driver.Holding{
			{LeaseID: "1", Token: 41, Permits: 2, Holder: web3, ExpiresIn: time.Minute},
			{LeaseID: "2", Token: 42, Permits: 1, Holder: web4, ExpiresIn: time.Second, Released: true},
		},
		Queue: []driver.Waiting{
			{LeaseID: "3", Mode: driver.Semaphore, Permits: 3, Holder: web4, Since: time.Second},
			{LeaseID: "4", Mode: driver.Semaphore, Permits: 1, Holder: web4},
		},
		QueueLength: 2, LastToken: 42,
	}
	closed = driver.Lock{
		Name: "closed", Mode: driver.Shared, LastToken: 42,
		Holders: []driver.Holding{
			{LeaseID: "1", Token: 41, Holder: web3, ExpiresIn: time.Minute, Released: true},
			{LeaseID: "2", Token: 42, Holder: web4, ExpiresIn: time.Second, Released: true},
		},
	}
	foreigner = driver.Lock{Name: "old\x1b[2J\u202e", Holders: []driver.Holding{{ExpiresIn: driver.Never}}}
	between   = driver.Lock{Name: "next", LastToken: 7, Queue: exclusive.Queue[:1], QueueLength: 1}
	free      = driver.Lock{Name: "free"}
)

func TestLock(t *testing.T) {
	for _, c := range []struct {
		lock driver.Lock
		want string
	}{
		{exclusive, `
job is held by web-3 (pid 812) for another 12s
  mode    exclusive
  reason  nightly
  label   a=1
  label   b=2
  token   41
  queue   1. web-4 (pid 77), exclusive, waiting for 3.2s
  queue   2. web-3 (pid 812), shared, waiting for 1m30s: nightly
`},
		{shared, `
read is held by 2 holders
  mode    shared
  holder  web-3 (pid 812) for another 1m0s
  reason  nightly
  label   a=1
  label   b=2
  token   41
  holder  web-4 (pid 77) for another 1.5s
  token   42
`},
		{semaphore, `
slots is held by web-3 (pid 812) for another 1m0s, 3 of 4 permits taken
  mode     semaphore
  holder   web-3 (pid 812) for another 1m0s
  permits  2
  reason   nightly
  label    a=1
  label    b=2
  token    41
  holder   kept closed for another 1s after web-4 (pid 77) released it
  permits  1
  token    42
  queue    1. web-4 (pid 77), 3 permits, waiting for 1s
  queue    2. web-4 (pid 77), 1 permit, waiting for 0s
`},
		{foreigner, `
old\x1b[2J\u202e is held by another client with no expiry
  mode  exclusive
`},
		{between, `
next is free
  last token  7
  queue       1. web-4 (pid 77), exclusive, waiting for 3.2s
`},
		{free, "\nfree is free\n"},
	} {
		if got, want := Lock(c.lock, nil), strings.TrimPrefix(c.want, "\n"); got != want {
			t.Errorf("%s:\n%swant\n%s", c.lock.Name, got, want)
		}
	}
}

// TestPlain: what a terminal would obey, or nobody could see, is written out.
func TestPlain(t *testing.T) {
	for s, want := range map[string]string{
		"Übung é 锁 🔒":   "Übung é 锁 🔒",
		"a\x1b[2J":      `a\x1b[2J`,
		"a\u009b2J":     `a\u009b2J`,
		"gnp.\u202eexe": `gnp.\u202eexe`,
		"job\u200b":     `job\u200b`,
		"a\u00a0b":      `a\u00a0b`,
	} {
		if got := Plain(s); got != want {
			t.Errorf("%+q is printed as %q, want %q", s, got, want)
		}
	}
}

// TestLine checks what one line says of several holders.
func TestLine(t *testing.T) {
	for _, c := range []struct {
		lock driver.Lock
		want string
	}{
		{exclusive, "job is held by web-3 (pid 812) for another 12s"},
		{shared, "read is held by 2 holders"},
		{semaphore, "slots is held by web-3 (pid 812) for another 1m0s, 3 of 4 permits taken"},
		{closed, "closed is kept closed for another 1m0s after web-3 (pid 812) released it"}, // until the last is over
	} {
		if got := Line(c.lock); got != c.want+"\n" {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestTable(t *testing.T) {
	const want = `
NAME               HOLDER                          MODE                EXPIRES IN   TOKEN   QUEUE   REASON
job                web-3 (pid 812)                 exclusive           12s          41      2       nightly
next               nobody                                                                   1
old\x1b[2J\u202e   another client                  exclusive           never                0
read               web-3 (pid 812)                 shared              1m0s         41      0       nightly
read               web-4 (pid 77)                  shared              1.5s         42
slots              web-3 (pid 812)                 semaphore, 2 of 4   1m0s         41      2       nightly
slots              nobody (closed by --min-hold)   semaphore, 1 of 4   1s           42
`
	if got := "\n" + Table([]driver.Lock{exclusive, between, foreigner, shared, semaphore}); got != want {
		t.Errorf("%swant%s", got, want)
	}
}
