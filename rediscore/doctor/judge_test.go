package doctor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
)

func TestServerVersions(t *testing.T) {
	for _, c := range []struct {
		text, product string
		enough, known bool
	}{
		{"# Server\r\nredis_version:7.0.15\r\n", "redis 7.0.15", true, true},
		{"redis_version:6.2.0\n", "redis 6.2.0", true, true},
		{"redis_version:6.0.16\n", "redis 6.0.16", false, true},
		{"redis_version:5.3.9\n", "redis 5.3.9", false, true},
		{"redis_version:10.0.0\n", "redis 10.0.0", true, true},
		{"txt:redis_version:7.2.4\nserver_name:valkey\nvalkey_version:8.0.1\n", "valkey 8.0.1", true, true},
		{"redis_version:7.2.4\nvalkey_version:7.2.5\n", "valkey 7.2.5", true, true},
		{"redis_version:7.2.0\nserver_name:other\n", "other, compatible with 7.2.0", true, true},
		{"other_version:1.0\nserver_name:other\n", "other 1.0", false, false},
	} {
		i := parseInfo(c.text)
		if enough, known := i.newEnough(); i.product() != c.product || enough != c.enough || known != c.known {
			t.Errorf("%q: %q, enough %t, known %t", c.text, i.product(), enough, known)
		}
	}
	s := &survey{}
	s.lookAtVersion(&server{info: parseInfo("redis_version:6.0.16")})
	drivertest.WantIs(t, "an old server", wantFinding(t, driver.Diagnosis{Findings: s.findings}, "server", driver.Fail, "update").Err, driver.ErrUnsupported)
}

func TestDiagnoseLimits(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		what string
		f    driver.Finding
		want driver.Level
	}{
		{"rate", rateOf(5*ms, 2*ms), driver.OK},
		{"rate", rateOf(7*ms, 2*ms), driver.OK},
		{"rate", rateOf(7*ms+1, 2*ms), driver.Warn},
		{"rate", rateOf(-7*ms-1, 2*ms), driver.Warn},
		{"rate of chrony", rateOf(83*ms, 2*ms), driver.Warn},
		{"lead", tokenFinding(time.Second, "x"), driver.OK},
		{"lead", tokenFinding(time.Second+1, "x"), driver.Warn},
	} {
		if c.f.Level != c.want {
			t.Errorf("%s: %s is %s, want %s", c.what, c.f.Text, c.f.Level, c.want)
		}
	}
	for apart, want := range map[time.Duration]driver.Level{102 * ms: driver.OK, 103 * ms: driver.Warn} {
		s := &survey{}
		s.compareClocks([]*server{
			{addr: "a", timing: timing{uncertainty: ms}}, {addr: "b", timing: timing{offset: apart, uncertainty: ms}},
		})
		wantFinding(t, driver.Diagnosis{Findings: s.findings}, "clocks", want)
	}
	s := &survey{}
	s.judgeMasters(map[string][]string{"a:1": {"s1", "s2"}, "b:1": {"s3"}})
	wantFinding(t, driver.Diagnosis{Findings: s.findings}, "sentinels", driver.Warn, "disagree", "a:1 by s1 and s2", "b:1 by s3")
}

// rateOf judges a clock that was ahead by a given time more, a second after the first look.
func rateOf(ahead, uncertainty time.Duration) driver.Finding {
	now, off := time.Now(), time.Hour
	first := timing{at: now, shown: now.Add(off), uncertainty: uncertainty / 2}
	return rateFinding("", first, timing{at: now.Add(time.Second), shown: now.Add(off + time.Second + ahead), uncertainty: uncertainty / 2})
}

// TestDiagnoseLonelyMaster checks for the warning that a master with replicas continues without
// them.
func TestDiagnoseLonelyMaster(t *testing.T) {
	one := &server{info: parseInfo("role:master\nslave0:ip=10.0.0.1,port=6379,state=online,offset=5,lag=0\n")}
	none := &server{info: parseInfo("role:master\n")}
	late := &server{info: parseInfo("role:master\nslave0:ip=10.0.0.1,port=6379,state=online,offset=5,lag=6\n")}
	for _, c := range []struct {
		server *server
		goesOn bool
		want   driver.Level
		words  string
	}{
		{one, true, driver.Warn, "set min-replicas-to-write 1"},
		{one, false, driver.OK, "1, at most"},
		{none, true, driver.OK, "none"},
		{late, false, driver.Warn, "silent for 6 s"},
	} {
		f := replicasFinding(c.server, "the rule", c.goesOn)
		wantFinding(t, driver.Diagnosis{Findings: []driver.Finding{f}}, "replicas", c.want, c.words, "the rule")
	}
}

// wantFinding fails t unless the first finding of a key has the level and all texts, and returns
// it.
func wantFinding(t *testing.T, d driver.Diagnosis, key string, level driver.Level, texts ...string) driver.Finding {
	t.Helper()
	i := slices.IndexFunc(d.Findings, func(f driver.Finding) bool { return f.Key == key })
	if i < 0 {
		t.Fatalf("no finding %s in %+v", key, d.Findings)
	}
	f := d.Findings[i]
	for _, text := range texts {
		if !strings.Contains(f.Text, text) {
			t.Errorf("%s: %q is not in %q", key, text, f.Text)
		}
	}
	if f.Level != level {
		t.Errorf("%s is %s, want %s: %s", key, f.Level, level, f.Text)
	}
	return f
}
