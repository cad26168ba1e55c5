package show

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// The locks of these tests.
var (
	deploy = lockinfo.LockState{Name: "deploy", QueueLength: 4, Holders: []lockinfo.Holding{{
		LeaseID: "1", Token: 11, Since: 12 * time.Minute, ExpiresIn: 27 * time.Second,
		Holder: lockinfo.Holder{Host: "web-3", PID: 812, User: "deploy", Program: "deploy.sh", Reason: "release 1.4"},
	}}}
	frozen = lockinfo.LockState{Name: "freeze", Holders: []lockinfo.Holding{{
		LeaseID: "2", Token: 12, Since: 26 * time.Hour, ExpiresIn: 22 * time.Hour, Holder: lockinfo.Holder{Host: "ops-1", User: "ada", Person: true, Reason: "no deployments"},
	}}}
	nightly = lockinfo.LockState{Name: "nightly\x1b[2J", Holders: []lockinfo.Holding{{
		LeaseID: "3", Token: 13, Since: time.Minute, ExpiresIn: 40 * time.Second, Released: true, Holder: lockinfo.Holder{Host: "web-4", PID: 77},
	}}}
	encoders = lockinfo.LockState{Name: "encoders", Mode: lockinfo.Permits(3, 5), Holders: []lockinfo.Holding{
		{LeaseID: "4", Token: 14, Mode: lockinfo.Permits(1, 5), Since: 3 * time.Second, ExpiresIn: 20 * time.Second, Holder: lockinfo.Holder{Host: "web-4", PID: 77}},
		{LeaseID: "5", Token: 15, Mode: lockinfo.Permits(2, 5), Since: 9 * time.Second, ExpiresIn: 25 * time.Second, Holder: lockinfo.Holder{Host: "web-5", PID: 78}},
	}}
	foreign = lockinfo.LockState{Name: "old", Holders: []lockinfo.Holding{{ExpiresIn: lockinfo.Never}}}
	handing = lockinfo.LockState{Name: "next", QueueLength: 1}
)

// drawn returns the lines that a table shows, without control sequences.
func drawn(table *LiveTable, now time.Time, columns, rows int) string {
	text := table.Draw(now, columns, rows)
	for _, sequence := range []string{home, clearLine, clearRest, bold, dim, red, yellow, ordinary} {
		text = strings.ReplaceAll(text, sequence, "")
	}
	return "\n" + strings.ReplaceAll(text, "\r\n", "\n") + "\n"
}

// TestLiveTable checks that contended and long-held locks come first, that times count on, and that
// kept names, persons and foreign clients are marked.
func TestLiveTable(t *testing.T) {
	start := time.Now()
	table := &LiveTable{Title: "memory:", Every: 2 * time.Second}
	if got, want := drawn(table, start, 80, 10), "\n0 locks, 0 waited for  memory:  every 2s, q ends\nlooking ...\n"; got != want {
		t.Errorf("before the first round:%s", got)
	}
	table.Tell(Round{At: start, Locks: []lockinfo.LockState{foreign, nightly, encoders, handing, frozen, deploy}})
	for _, c := range []struct {
		later         time.Duration
		columns, rows int
		want          string
	}{
		{0, 130, 13, `
6 locks, 2 waited for  memory:  every 2s, q ends

NAME            HOLDER                         HELD FOR  LEFT   QUEUE  MODE    PROCESS        TOKEN  REASON
deploy          deploy@web-3                   12m       27s    4              812 deploy.sh  11     release 1.4
next            nobody                                          1
freeze          ada@ops-1 (a person)           26h       22h    0                             12     no deployments
encoders        web-4                          3s        20s    0      1 of 5  77             14
encoders        web-5                          9s        25s           2 of 5  78             15
nightly\x1b[2J  nobody (closed by --min-hold)            40s    0                             13
old             not holdfast                             never  0
`},
		{90 * time.Second, 100, 7, `
6 locks, 2 waited for  memory:  every 2s, q ends
NAME      HOLDER                HELD FOR  LEFT    QUEUE  MODE    PROCESS        REASON
deploy    deploy@web-3          14m       0s      4              812 deploy.sh  release 1.4
next      nobody                                  1
freeze    ada@ops-1 (a person)  26h2m     21h59m  0                             no deployments
encoders  web-4                 1m33s     0s      0      1 of 5  77
... and 3 more
`},
		{time.Second, 61, 24, `
6 locks, 2 waited for  memory:  every 2s, q ends

NAME            HOLDER                HELD FOR  LEFT   QUEUE
deploy          deploy@web-3          12m       26s    4
next            nobody                                 1
freeze          ada@ops-1 (a person)  26h       22h    0
encoders        web-4                 4s        19s    0
encoders        web-5                 10s       24s
nightly\x1b[2J  nobody (closed by...            39s    0
old             not holdfast                    never  0
`},
		{0, 20, 4, ``},
		{0, 1, 1, ``},
	} {
		got := drawn(table, start.Add(c.later), c.columns, c.rows)
		if c.want != "" && got != c.want {
			t.Errorf("on %d by %d:%swant%s", c.columns, c.rows, got, c.want)
		}
		lines := strings.Split(strings.TrimSuffix(got[1:], "\n"), "\n")
		if len(lines) > c.rows {
			t.Errorf("%d lines on %d rows:%s", len(lines), c.rows, got)
		}
		for _, line := range lines {
			if width(line) >= c.columns && width(line) > 0 {
				t.Errorf("a line takes %d of %d columns: %q", width(line), c.columns, line)
			}
		}
	}
}

// TestTableOutage checks that the last table stays during an outage, with the reason for it.
func TestTableOutage(t *testing.T) {
	start := time.Now()
	table := &LiveTable{Title: "memory:", Every: time.Second, Plain: true}
	table.Tell(Round{At: start, Locks: []lockinfo.LockState{foreign}})
	for i := range 3 {
		table.Tell(Round{At: start.Add(time.Duration(i) * time.Second), Err: fmt.Errorf("%w: by a test", driver.ErrUnavailable)})
	}
	text := table.Draw(start.Add(10*time.Second), 100, 24)
	if !strings.Contains(text, "the store has not answered for 10s: store is unavailable: by a test"+clearLine) || !strings.Contains(text, "\nold") {
		t.Errorf("%q", text)
	}
	for _, style := range []string{bold, dim, red, yellow, ordinary} {
		if strings.Contains(text, style) {
			t.Errorf("without colours it has %q", style)
		}
	}
	table.Plain = false
	if text := table.Draw(start, 100, 24); !strings.Contains(text, red+"the store") || !strings.Contains(text, bold+"NAME") {
		t.Errorf("%q", text)
	}
	table.Tell(Round{At: start})
	if text := table.Draw(start, 100, 24); strings.Contains(text, "answered") || strings.Contains(text, "old") {
		t.Errorf("when it answers again: %q", text)
	}
}

// TestChanges checks that neither a renewal nor the passing of time is a change.
func TestChanges(t *testing.T) {
	renewed, waited, handed, kept := deploy, deploy, deploy, deploy
	renewed.Holders = []lockinfo.Holding{deploy.Holders[0]}
	renewed.Holders[0].ExpiresIn, renewed.Holders[0].Since = time.Minute, time.Hour
	waited.QueueLength--
	handed.Holders = []lockinfo.Holding{{LeaseID: "9", Token: 19}}
	kept.Holders = []lockinfo.Holding{deploy.Holders[0]}
	kept.Holders[0].Released = true
	none := []lockinfo.LockState(nil)
	for what, c := range map[string]struct {
		before, after []lockinfo.LockState
		want          string
	}{
		"nothing":     {none, none, "[]"},
		"the first":   {none, []lockinfo.LockState{frozen, deploy}, "[appeared deploy appeared freeze]"},
		"renewed":     {[]lockinfo.LockState{deploy, frozen}, []lockinfo.LockState{frozen, renewed}, "[]"},
		"queue":       {[]lockinfo.LockState{deploy}, []lockinfo.LockState{waited}, "[changed deploy]"},
		"handed over": {[]lockinfo.LockState{deploy}, []lockinfo.LockState{handed}, "[changed deploy]"},
		"kept closed": {[]lockinfo.LockState{deploy}, []lockinfo.LockState{kept}, "[changed deploy]"},
		"gone":        {[]lockinfo.LockState{frozen, deploy, encoders}, []lockinfo.LockState{encoders}, "[gone deploy gone freeze]"},
	} {
		var got []string
		for _, change := range Changes(c.before, c.after) {
			got = append(got, change.Change, change.Name)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %s", what, got, c.want)
		}
	}
}

// list returns a list that takes some time before it yields locks, or an error.
func list(took time.Duration, err error, locks ...lockinfo.LockState) func(context.Context) iter.Seq2[lockinfo.LockState, error] {
	return func(ctx context.Context) iter.Seq2[lockinfo.LockState, error] {
		return driver.Listed(func() ([]lockinfo.LockState, error) {
			select {
			case <-time.After(took):
				return locks, err
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
	}
}

func fine(context.Context) error { return nil }

// TestRounds checks that rounds begin at the interval, and that after a long round the store is
// left alone for four times as long.
func TestRounds(t *testing.T) {
	for _, c := range []struct{ took, interval, want time.Duration }{
		{0, 2 * time.Second, 2 * time.Second},
		{100 * time.Millisecond, 2 * time.Second, 2 * time.Second},
		{time.Second, 2 * time.Second, 5 * time.Second},
		{10 * time.Second, time.Second, 50 * time.Second}, // even if the store was probed meanwhile
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			var at []time.Time
			err := Rounds{List: list(c.took, nil, deploy), Probe: fine, Interval: c.interval}.Run(ctx, func(r Round) {
				if len(r.Locks) != 1 || r.Err != nil || !r.At.Equal(time.Now()) {
					t.Errorf("%+v", r)
				}
				if at = append(at, r.At); len(at) == 10 {
					cancel()
				}
			})
			if got := at[9].Sub(at[0]) / 9; err != nil || got != c.want {
				t.Errorf("rounds of %s: one every %s, want %s; %v", c.took, got, c.want, err)
			}
		})
	}
}

// TestRoundsOutage checks that a store that refuses or hangs is reported and looked at again, and
// that another error ends the rounds.
func TestRoundsOutage(t *testing.T) {
	away := fmt.Errorf("%w: by a test", driver.ErrUnavailable)
	for what, r := range map[string]Rounds{
		"refuses": {List: list(0, away, deploy), Probe: fine},
		"hangs":   {List: list(time.Hour, nil), Probe: func(context.Context) error { return away }},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			r.Interval = time.Second
			start, told := time.Now(), 0
			err := r.Run(ctx, func(r Round) {
				if !errors.Is(r.Err, driver.ErrUnavailable) {
					t.Errorf("%s: %v", what, r.Err)
				}
				if told++; told == 3 {
					cancel()
				}
			})
			if took := time.Since(start); err != nil || took > time.Minute {
				t.Errorf("%s: %v after %s", what, err, took)
			}
		})
	}
	refused := fmt.Errorf("%w: by a test", driver.ErrPermission)
	err := Rounds{List: list(0, refused), Probe: fine, Interval: time.Second}.Run(t.Context(), func(Round) { t.Error("received a round") })
	if !errors.Is(err, driver.ErrPermission) {
		t.Errorf("%v, want the error of the list", err)
	}
}
