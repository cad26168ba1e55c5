package show

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// The locks of these tests.
var (
	web3 = lockinfo.Holder{Host: "web-3", User: "deploy", PID: 812, Program: "deploy.sh", Reason: "nightly", Labels: map[string]string{"b": "2", "a": "1"}}
	web4 = lockinfo.Holder{Host: "web-4", PID: 77}

	exclusive = lockinfo.LockState{
		Name:    "job",
		Holders: []lockinfo.Holding{{LeaseID: "1", Token: 41, Holder: web3, Since: 12 * time.Minute, ExpiresIn: 12 * time.Second}},
		Queue: []lockinfo.Place{
			{LeaseID: "2", Holder: web4, Since: 3240 * time.Millisecond, ExpiresIn: 4 * time.Second},
			{LeaseID: "3", Mode: lockinfo.Shared, Holder: web3, Since: 90 * time.Second, ExpiresIn: time.Second},
		},
		QueueLength: 2, LastToken: 41,
	}
	shared = lockinfo.LockState{
		Name: "read", Mode: lockinfo.Shared, LastToken: 42,
		Holders: []lockinfo.Holding{
			{LeaseID: "1", Token: 41, Mode: lockinfo.Shared, Holder: web3, Since: 3 * time.Hour, ExpiresIn: time.Minute},
			{LeaseID: "2", Token: 42, Mode: lockinfo.Shared, Holder: web4, Since: 4 * time.Second, ExpiresIn: 1500 * time.Millisecond},
		},
	}
	semaphore = lockinfo.LockState{
		Name: "slots", Mode: lockinfo.Permits(3, 4),
		Holders: []lockinfo.Holding{
			{LeaseID: "1", Token: 41, Mode: lockinfo.Permits(2, 4), Holder: web3, Since: 70 * time.Second, ExpiresIn: time.Minute},
			{LeaseID: "2", Token: 42, Mode: lockinfo.Permits(1, 4), Holder: web4, Since: time.Minute, ExpiresIn: time.Second, Released: true},
		},
		Queue: []lockinfo.Place{
			{LeaseID: "3", Mode: lockinfo.Permits(3, 4), Holder: web4, Since: time.Second},
			{LeaseID: "4", Mode: lockinfo.Permits(1, 4), Holder: web4},
		},
		QueueLength: 2, LastToken: 42,
	}
	closed = lockinfo.LockState{
		Name: "closed", Mode: lockinfo.Shared, LastToken: 42,
		Holders: []lockinfo.Holding{
			{LeaseID: "1", Token: 41, Holder: web3, ExpiresIn: time.Minute, Released: true},
			{LeaseID: "2", Token: 42, Holder: web4, ExpiresIn: time.Second, Released: true},
		},
	}
	foreigner = lockinfo.LockState{Name: "old\x1b[2J\u202e", Holders: []lockinfo.Holding{{ExpiresIn: lockinfo.Never}}}
	freeze    = lockinfo.LockState{Name: "deploy", Holders: []lockinfo.Holding{{
		LeaseID: "1", Token: 41, Since: 3 * time.Hour, ExpiresIn: 45 * time.Hour,
		Holder: lockinfo.Holder{Host: "ops-1", User: "ada", Person: true, Reason: "release freeze"},
	}}}
	expiring = lockinfo.LockState{Name: "theirs", Holders: []lockinfo.Holding{{ExpiresIn: 12 * time.Second}}}
	between  = lockinfo.LockState{Name: "next", LastToken: 7, Queue: exclusive.Queue[:1], QueueLength: 1}
	free     = lockinfo.LockState{Name: "free"}
)

func TestLock(t *testing.T) {
	for _, c := range []struct {
		lock lockinfo.LockState
		want string
	}{
		{exclusive, `
job is held by deploy@web-3 (pid 812, deploy.sh) for 12m
  mode    exclusive
  lease   ends in 12s unless it is renewed
  reason  nightly
  label   a=1
  label   b=2
  token   41
  queue   1. web-4 (pid 77), exclusive, waiting for 3.2s
  queue   2. deploy@web-3 (pid 812, deploy.sh), shared, waiting for 1m30s: nightly
`},
		{shared, `
read is held by 2 holders
  mode    shared
  holder  deploy@web-3 (pid 812, deploy.sh) for 3h
  lease   ends in 1m unless it is renewed
  reason  nightly
  label   a=1
  label   b=2
  token   41
  holder  web-4 (pid 77) for 4s
  lease   ends in 1.5s unless it is renewed
  token   42
`},
		{semaphore, `
slots is held by deploy@web-3 (pid 812, deploy.sh) for 1m10s, 3 of 4 permits taken
  mode     semaphore
  holder   deploy@web-3 (pid 812, deploy.sh) for 1m10s
  lease    ends in 1m unless it is renewed
  permits  2
  reason   nightly
  label    a=1
  label    b=2
  token    41
  holder   kept closed for another 1s after web-4 released it
  permits  1
  token    42
  queue    1. web-4 (pid 77), 3 permits, waiting for 1s
  queue    2. web-4 (pid 77), 1 permit, waiting for 0s
`},
		{foreigner, `
old\x1b[2J\u202e is held by a client that is not holdfast, with no expiry
  mode  exclusive
`},
		{expiring, `
theirs is held by a client that is not holdfast, ends in 12s unless it is renewed
  mode  exclusive
`},
		{freeze, `
deploy is held by ada@ops-1 (a person) for 3h, ends in 45h
  mode    exclusive
  reason  release freeze
  token   41
`},
		{between, `
next is free
  last token  7
  queue       1. web-4 (pid 77), exclusive, waiting for 3.2s
`},
		{free, "\nfree is free\n"},
	} {
		if got, want := Lock(c.lock, holdfast.OnceRecord{}, nil), strings.TrimPrefix(c.want, "\n"); got != want {
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

// TestLockLine checks what one line says of several holders.
func TestLockLine(t *testing.T) {
	for _, c := range []struct {
		lock lockinfo.LockState
		want string
	}{
		{exclusive, "job is held by deploy@web-3 (pid 812, deploy.sh) for 12m"},
		{shared, "read is held by 2 holders"},
		{semaphore, "slots is held by deploy@web-3 (pid 812, deploy.sh) for 1m10s, 3 of 4 permits taken"},
		{closed, "closed is kept closed for another 1m after deploy@web-3 (deploy.sh) released it"}, // until the last is over
	} {
		if got := LockLine(c.lock); got != c.want+"\n" {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestTable(t *testing.T) {
	const want = `
NAME               HOLDER                              MODE                HELD FOR   ENDS IN   TOKEN   QUEUE   REASON
job                deploy@web-3 (pid 812, deploy.sh)   exclusive           12m                  41      2       nightly
next               nobody                                                                               1
old\x1b[2J\u202e   not holdfast                        exclusive                      never             0
theirs             not holdfast                        exclusive                      12s               0
deploy             ada@ops-1 (a person)                exclusive           3h         45h       41      0       release freeze
read               deploy@web-3 (pid 812, deploy.sh)   shared              3h                   41      0       nightly
read               web-4 (pid 77)                      shared              4s                   42
slots              deploy@web-3 (pid 812, deploy.sh)   semaphore, 2 of 4   1m10s                41      2       nightly
slots              nobody (closed by --min-hold)       semaphore, 1 of 4              1s        42
`
	if got := "\n" + Table([]lockinfo.LockState{exclusive, between, foreigner, expiring, freeze, shared, semaphore}); got != want {
		t.Errorf("%swant%s", got, want)
	}
}
