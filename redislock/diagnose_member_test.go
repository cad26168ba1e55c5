package redislock

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/quorumlock"
	"github.com/holdfast-locks/holdfast/rediscore/doctor"
)

// checked returns the findings of Check, and the run ID.
func checked(t *testing.T, m driver.Member) (driver.Diagnosis, string) {
	t.Helper()
	run, d, err := m.(quorumlock.Checker).Check(t.Context(), driver.DiagnoseRequest{TTL: 30 * time.Second}, time.Minute)
	if err != nil {
		t.Fatalf("Check: %v", err)
	}
	return d, run
}

func TestCheckGood(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t, persistent...)
	admin := plain(t, server)
	m := admitted(t, server.URL+"?prefix=p:")
	votes(t, m, proposal("held"), driver.VoteAccepted)
	before := dump(t, admin)
	d, run := checked(t, m)
	wantOnly(t, d)
	if after := dump(t, admin); !maps.Equal(before, after) {
		t.Errorf("the store was %v and is %v", before, after)
	}
	for _, key := range []string{"server", "memory", "persistence", "replicas", "clock", "round_trip", "rights", "locks", "keys", "tokens"} {
		wantFinding(t, d, key, driver.OK)
	}
	if f := wantFinding(t, d, "quarantine", driver.OK, "over"); f.Measures["remaining"] != 0 {
		t.Errorf("%+v", f)
	}
	if f := wantFinding(t, d, "clock", driver.OK); f.Measures["uncertainty"] <= 0 {
		t.Errorf("%+v", f)
	}
	if info := text(t, admin, "INFO server"); run == "" || !strings.Contains(info, "run_id:"+run) {
		t.Errorf("run %q is not in %q", run, info)
	}
	if m.(fmt.Stringer).String() != server.Addr {
		t.Errorf("the member is called %q, want %q", m, server.Addr)
	}
}

// TestCheckQuarantine checks that the finding for a server that lost its memory agrees with the
// reply to a proposal.
func TestCheckQuarantine(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t, persistent...)
	m := openMember(t, server.URL)
	d, _ := checked(t, m)
	wantOnly(t, d, "quarantine")
	f := wantFinding(t, d, "quarantine", driver.Warn, "grants nothing for another")
	if left := f.Measures["remaining"]; left < 50*time.Second || left > time.Minute {
		t.Errorf("%s remain, want a minute", left)
	}
	if reply := votes(t, m, proposal("a"), driver.VoteQuarantined); reply.Remaining > f.Measures["remaining"] {
		t.Errorf("the check said %s, and a proposal %s", f.Measures["remaining"], reply.Remaining)
	}
	if n := number(t, plain(t, server), "DBSIZE"); n != 1 {
		t.Errorf("%d keys, want the marker", n)
	}
}

func TestCheckSettings(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t, "--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru")
	m := admitted(t, server.URL)
	d, _ := checked(t, m)
	wantOnly(t, d, "memory", "persistence")
	wantFinding(t, d, "persistence", driver.Warn, "this member", "grants nothing until", "appendonly yes")
	do(t, plain(t, server), "REPLICAOF 127.0.0.1 1")
	d, _ = checked(t, m)
	f := wantFinding(t, d, "independence", driver.Fail, "replica of 127.0.0.1:1")
	wantIs(t, "a replica", f.Err, driver.ErrInvalid)
	wantIs(t, "its locks", wantFinding(t, d, "locks", driver.Fail).Err, driver.ErrUnavailable)
}

func TestCheckRights(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t, persistent...)
	admin := plain(t, server)
	admitted(t, server.URL)
	for _, c := range []struct {
		rights string
		not    []string
		key    string
		level  driver.Level
		texts  []string
	}{
		{
			"~* resetchannels +evalsha +eval +exists +get +set +del +pttl +pexpire +time +info +scan +zcard +zcount +zscore +zrange +zrangebyscore +hget +hmget +getrange +hscan +zrank",
			nil, "rights", driver.OK, []string{"this user may run all commands"},
		},
		{"~* &* +@all -evalsha", []string{"rights", "locks"}, "rights", driver.Fail, []string{"may not run evalsha: give it +evalsha"}},
		{"~* &* +@all -info", []string{"rights", "locks", "server"}, "rights", driver.Fail, []string{"may not run info: give it +info"}},
		{"~* &* +@all -pexpire", []string{"rights", "locks"}, "rights", driver.Fail, []string{"may not run pexpire"}},
		{"~* &* +@all -time", []string{"rights", "locks", "clock"}, "rights", driver.Fail, []string{"may not run time"}},
		{"~holdfast-doctor-* ~holdfast:{holdfast-doctor-* &* +@all", []string{"rights", "locks"}, "rights", driver.Fail, []string{"keys such as \"holdfast:{member}:marker\""}},
	} {
		t.Run(c.rights, func(t *testing.T) {
			do(t, admin, "ACL SETUSER guest reset on >pw "+c.rights)
			m := openMember(t, strings.Replace(server.URL, "redis://", "redis://guest:pw@", 1))
			before := dump(t, admin)
			d, _ := checked(t, m)
			got := map[string]bool{}
			for _, f := range d.Findings {
				got[f.Key] = got[f.Key] || f.Level != driver.OK
			}
			for _, key := range c.not {
				if !got[key] {
					t.Errorf("%s is well: %+v", key, d.Findings)
				}
			}
			if c.not == nil {
				wantOnly(t, d)
			}
			wantFinding(t, d, c.key, c.level, c.texts...)
			if after := dump(t, admin); !maps.Equal(before, after) {
				t.Errorf("the store was %v and is %v", before, after)
			}
		})
	}
}

func TestCheckGone(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	m := admitted(t, server.URL)
	look := func() error {
		began := time.Now()
		_, _, err := m.(quorumlock.Checker).Check(t.Context(), driver.DiagnoseRequest{TTL: time.Second}, time.Minute)
		if took := time.Since(began); took > 2*doctor.Limit+time.Second {
			t.Errorf("it took %s", took)
		}
		return err
	}
	server.Stop()
	wantIs(t, "a silent server", look(), driver.ErrUnavailable)
	server.Kill()
	wantIs(t, "a dead server", look(), driver.ErrUnavailable)
	_ = m.Close()
	wantIs(t, "after Close", look(), driver.ErrClosed)
}

// TestCheckWrongAnswers checks that a server that runs scripts wrongly is found. Here it runs other
// scripts.
func TestCheckWrongAnswers(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t, persistent...)
	admitted(t, server.URL)
	for _, c := range []struct{ what, file, text string }{
		{"propose: ", "member_propose", "return {2, 0, 7, 0, 0, '', '', 0, 0}"},
		{"propose: ", "member_propose", "return {1, 8, 9, 8, 0, '', '', 0, 0}"},
		{"renew fails", "member_renew", "return {8}"},
		{"renew fails", "member_renew", "return {0}"},
		{"withdraw fails", "member_withdraw", "return {8, ''}"},
		// The script releases the lease and deletes the token.
		{"propose after withdraw fails", "member_withdraw", "redis.call('DEL', KEYS[1], KEYS[2]); return {tonumber(ARGV[4]), ''}"},
	} {
		m := memberOn(t, spoilt(t, server.URL, c.file, c.text))
		d, _ := checked(t, m)
		wantOnly(t, d, "locks")
		if f := wantFinding(t, d, "locks", driver.Fail); !strings.HasPrefix(f.Text, c.what) {
			t.Errorf("%q does not begin with %q", f.Text, c.what)
		}
	}
}
