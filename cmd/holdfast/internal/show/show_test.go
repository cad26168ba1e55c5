package show

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/view"
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
  since   Fri 27 Nov 11:48:00
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
  since   Fri 27 Nov 09:00:00
  lease   ends in 1m unless it is renewed
  reason  nightly
  label   a=1
  label   b=2
  token   41
  holder  web-4 (pid 77) for 4s
  since   Fri 27 Nov 11:59:56
  lease   ends in 1.5s unless it is renewed
  token   42
`},
		{semaphore, `
slots is held by deploy@web-3 (pid 812, deploy.sh) for 1m10s, 3 of 4 permits taken
  mode     semaphore
  holder   deploy@web-3 (pid 812, deploy.sh) for 1m10s
  since    Fri 27 Nov 11:58:50
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
  since   Fri 27 Nov 09:00:00
  reason  release freeze
  token   41
`},
		{between, `
next is free
  last token  7
  queue       1. web-4 (pid 77), exclusive, waiting for 3.2s
`},
		{free, "\nfree is free, and was not used in the last 24 hours\n"},
	} {
		if got, want := Lock(view.Lock{LockState: c.lock}, nil, noon), strings.TrimPrefix(c.want, "\n"); got != want {
			t.Errorf("%s:\n%swant\n%s", c.lock.Name, got, want)
		}
	}
}

// TestPlain checks that control characters and invisible characters are escaped.
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

// TestLockLine checks the one line about a lock, also with several holders.
func TestLockLine(t *testing.T) {
	for _, c := range []struct {
		lock lockinfo.LockState
		want string
	}{
		{exclusive, "job is held by deploy@web-3 (pid 812, deploy.sh) for 12m"},
		{shared, "read is held by 2 holders"},
		{semaphore, "slots is held by deploy@web-3 (pid 812, deploy.sh) for 1m10s, 3 of 4 permits taken"},
		{closed, "closed is kept closed for another 1m after deploy@web-3 (deploy.sh) released it"}, // until the last one ends
	} {
		if got := LockLine(c.lock); got != c.want+"\n" {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// noon is the current time in these tests, wherever they run.
var noon = time.Date(2026, time.November, 27, 12, 0, 0, 0, time.Local)

// TestTabs checks that output for another program has all columns, with a tab between two.
func TestTabs(t *testing.T) {
	want := strings.Join(heads, "\t") + `
job	deploy@web-3	12m	12s	2		812 deploy.sh	41	nightly
next	nobody			1				
old\x1b[2J\u202e	not holdfast		never	0				
slots	deploy@web-3	1m10s	1m	2	2 of 4	812 deploy.sh	41	nightly
slots	nobody (closed by --min-hold)		1s		1 of 4		42	
`
	if got := Table([]lockinfo.LockState{exclusive, between, foreigner, semaphore}, 0); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestLongQueue checks that only the first of a queue of hundreds are shown, below the holder and
// the lock for which the holder waits itself.
func TestLongQueue(t *testing.T) {
	lock := exclusive
	lock.QueueLength, lock.Queue = 500, nil
	for range 256 {
		lock.Queue = append(lock.Queue, lockinfo.Place{Holder: web4})
	}
	other := lockinfo.LockState{Name: "other", Queue: []lockinfo.Place{{Holder: web3}, {Holder: web4}}}
	got := Lock(view.Lock{LockState: lock}, WaitersOf([]lockinfo.LockState{lock, other}), noon)
	for _, want := range []string{"\n  since    Fri 27 Nov 11:48:00\n", "\n  blocked  it waits for other itself\n", "\n  queue    10. web-4", "\n  queue    and 490 more: see --json\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %q:\n%s", want, got)
		}
	}
	if n := strings.Count(got, "\n"); n > 25 {
		t.Errorf("%d lines:\n%s", n, got)
	}
}

// TestBlocked checks that the longest wait comes first, and that circles are marked as deadlocks.
func TestBlocked(t *testing.T) {
	who := func(n int) lockinfo.Holder { return lockinfo.Holder{Host: "web", User: "etl", PID: n} }
	lock := func(name string, waited time.Duration, mode lockinfo.Mode, holder int, waiters ...int) lockinfo.LockState {
		l := lockinfo.LockState{Name: name, Mode: mode, QueueLength: len(waiters)}
		l.Holders = []lockinfo.Holding{{LeaseID: "1", Token: 1, Mode: mode, Holder: who(holder), Since: time.Hour}}
		for _, n := range waiters {
			l.Queue = append(l.Queue, lockinfo.Place{Holder: who(n), Since: waited})
		}
		return l
	}
	const want = `
NAME  HOLDER   HELD FOR  WAITING  WAITS FOR     REASON
d     etl@web  1h        1, 4m    e
a     etl@web  1h        2, 3m    b (deadlock)
b     etl@web  1h        1, 2m    a (deadlock)
e     etl@web  1h        1, 1m
next  nobody             1, 3.2s
`
	s := lock("s", 0, lockinfo.Permits(1, 2), 7, 8)
	all := []lockinfo.LockState{
		lock("a", 3*time.Minute, lockinfo.Exclusive, 1, 2, 3), lock("b", 2*time.Minute, lockinfo.Exclusive, 2, 1),
		lock("d", 4*time.Minute, lockinfo.Exclusive, 4, 5), lock("e", time.Minute, lockinfo.Exclusive, 6, 4), between,
	}
	if got := "\n" + Blocked(all, 100); got != want {
		t.Errorf("%swant%s", got, want)
	}
	// A permit of a semaphore may come from another holder.
	if got := Blocked([]lockinfo.LockState{s, lock("r", 0, lockinfo.Exclusive, 8, 7)}, 0); strings.Contains(got, "deadlock") {
		t.Errorf("a circle through a semaphore:\n%s", got)
	}
}

// TestHistory checks the times of events, and that events of clients that only waited are counted
// in one line.
func TestHistory(t *testing.T) {
	event := func(kind holdfast.HistoryKind, ago time.Duration) holdfast.HistoryEvent {
		return holdfast.HistoryEvent{Kind: kind, Ago: ago, Holder: web4, Waited: time.Second, Held: 2 * time.Second}
	}
	events := []holdfast.HistoryEvent{event(holdfast.HistoryAcquired, 70*time.Minute), event(holdfast.HistoryQueued, time.Hour)}
	for range 20 {
		events = append(events, event(holdfast.HistoryQueued, time.Minute), event(holdfast.HistoryGaveUp, time.Minute))
	}
	events = append(events, event(holdfast.HistoryQueued, 59*time.Second), event(holdfast.HistoryReleased, 9*time.Second), event(holdfast.HistoryQueued, time.Second))
	const want = `
Fri 27 Nov 10:50:00  1h10m ago  acquired  web-4 (pid 77)
Fri 27 Nov 11:59:01  59s ago    waiters   22 began to wait, 20 gave up
Fri 27 Nov 11:59:51  9s ago     released  web-4 (pid 77), held for 2s
Fri 27 Nov 11:59:59  1s ago     queued    web-4 (pid 77)
`
	if got := "\n" + History("job", events, noon.Add(-24*time.Hour), noon); got != want {
		t.Errorf("%swant%s", got, want)
	}
	if got := History("job", nil, noon.Add(-2*time.Hour), noon); got != "job: nothing happened in the last 2h\n" {
		t.Errorf("%q", got)
	}
}

// TestHistoryOfOnce checks that a waiter that got the result of another client has not given up.
func TestHistoryOfOnce(t *testing.T) {
	worker, waiter := web4, holdfast.Holder{Host: "web-5", PID: 78, Once: true}
	worker.Once = true
	queued := func(ago time.Duration, who holdfast.Holder) holdfast.HistoryEvent {
		return holdfast.HistoryEvent{Kind: holdfast.HistoryQueued, Ago: ago, Holder: who}
	}
	left := func(ago, waited time.Duration, who holdfast.Holder) holdfast.HistoryEvent {
		return holdfast.HistoryEvent{Kind: holdfast.HistoryGaveUp, Ago: ago, Waited: waited, Holder: who}
	}
	events := []holdfast.HistoryEvent{
		{Kind: holdfast.HistoryAcquired, Ago: 60 * time.Second, Holder: worker},
		queued(50*time.Second, waiter), queued(40*time.Second, waiter), left(30*time.Second, 20*time.Second, waiter),
		{Kind: holdfast.HistoryCompleted, Ago: 20 * time.Second, Holder: worker, Held: 40 * time.Second}, left(20*time.Second, 20*time.Second, waiter),
		{Kind: holdfast.HistoryAcquired, Ago: 15 * time.Second, Holder: worker},
		queued(14*time.Second, waiter), queued(13*time.Second, waiter), queued(12*time.Second, web4),
		{Kind: holdfast.HistoryCompleted, Ago: 10 * time.Second, Holder: worker, Held: 5 * time.Second},
		left(10*time.Second, 4*time.Second, waiter), left(10*time.Second, 3*time.Second, waiter), left(9*time.Second, 3*time.Second, web4),
		{Kind: holdfast.HistoryAcquired, Ago: 8 * time.Second, Holder: web4},
		left(5*time.Second, 2*time.Second, waiter),
	}
	const want = `
Fri 27 Nov 11:59:00  1m ago   acquired   web-4 (pid 77)
Fri 27 Nov 11:59:30  30s ago  waiters    2 began to wait, 1 gave up
Fri 27 Nov 11:59:40  20s ago  completed  web-4 (pid 77), held for 40s
Fri 27 Nov 11:59:40  20s ago  replayed   web-5 (pid 78), waited for 20s
Fri 27 Nov 11:59:45  15s ago  acquired   web-4 (pid 77)
Fri 27 Nov 11:59:48  12s ago  waiters    3 began to wait
Fri 27 Nov 11:59:50  10s ago  completed  web-4 (pid 77), held for 5s
Fri 27 Nov 11:59:51  9s ago   waiters    1 gave up, 2 replayed
Fri 27 Nov 11:59:52  8s ago   acquired   web-4 (pid 77)
Fri 27 Nov 11:59:55  5s ago   gave up    web-5 (pid 78), waited for 2s
`
	if got := "\n" + History("job", events, noon.Add(-24*time.Hour), noon); got != want {
		t.Errorf("%swant%s", got, want)
	}
}

// TestDiagnosis checks that each server is shown once, and that the last line counts failures and
// warnings.
func TestDiagnosis(t *testing.T) {
	const want = `
ok    store       redis://a,b
ok    locks       fine

a:6379
ok    clock rate  fine
warn  memory      full

b:6379
fail  clock rate  wrong

1 failure, 1 warning
`
	d := driver.Diagnosis{Findings: []driver.Finding{
		{Key: "store", Text: "redis://a,b"}, {Key: "clock_rate", Server: "a:6379", Text: "fine"}, {Key: "clock_rate", Server: "b:6379", Level: driver.Fail, Text: "wrong"},
		{Key: "memory", Server: "a:6379", Level: driver.Warn, Text: "full"}, {Key: "locks", Text: "fine"},
	}}
	if got := "\n" + Diagnosis(d); got != want {
		t.Errorf("%swant%s", got, want)
	}
}
