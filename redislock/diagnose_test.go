package redislock

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/rediscore"
	"github.com/holdfast-locks/holdfast/rediscore/doctor"
)

// persistent makes a server keep its data on disk.
var persistent = []string{"--appendonly", "yes"}

func diagnose(t *testing.T, url string) driver.Diagnosis {
	t.Helper()
	d, err := open(t, url).Diagnose(t.Context(), driver.DiagnoseRequest{TTL: 30 * time.Second, URL: url})
	if err != nil {
		t.Fatalf("diagnose: %v", err)
	}
	return d
}

// wantFinding fails t unless the first finding of a key has the level and all
// texts, and returns it.
func wantFinding(t *testing.T, d driver.Diagnosis, key string, level driver.Level, texts ...string) driver.Finding {
	t.Helper()
	for _, f := range d.Findings {
		if f.Key != key {
			continue
		}
		for _, text := range texts {
			if !strings.Contains(f.Text, text) {
				t.Errorf("%s: %q is not in %q", key, text, f.Text)
			}
		}
		if f.Level != level {
			t.Errorf("%s is %s, want %s: %s", key, f.Level, level, f.Text)
		}
		if (f.Err != nil) != (f.Level == driver.Fail) {
			t.Errorf("%s is %s with the error %v", key, f.Level, f.Err)
		}
		return f
	}
	t.Fatalf("no finding %s in %+v", key, d.Findings)
	return driver.Finding{}
}

// wantOnly fails t unless exactly the checks of keys have findings.
func wantOnly(t *testing.T, d driver.Diagnosis, keys ...string) {
	t.Helper()
	want, got := map[string]bool{}, map[string]bool{}
	for _, key := range keys {
		want[key] = true
	}
	for _, f := range d.Findings {
		if f.Level != driver.OK {
			got[f.Key] = true
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("not well: %v, want %v: %+v", got, want, d.Findings)
	}
}

func TestDiagnoseGood(t *testing.T) {
	server := testsvc.Redis(t, persistent...)
	e, admin := open(t, server.URL), plain(t, server)
	drivertest.Granted(t, e, drivertest.Request("held", time.Minute))
	drivertest.Queued(t, e, "held", time.Minute)
	drivertest.Cycle(t, e, "free")
	before := dump(t, admin)
	d := diagnose(t, server.URL)
	wantOnly(t, d)
	if after := dump(t, admin); !maps.Equal(before, after) {
		t.Errorf("the store was %v and is %v", before, after)
	}
	for _, key := range []string{"server", "memory", "persistence", "replicas", "clock", "clock_rate", "round_trip", "rights", "messages", "locks", "onetime", "tokens"} {
		wantFinding(t, d, key, driver.OK)
	}
	keys := wantFinding(t, d, "keys", driver.OK)
	if c := keys.Counts; c["last_tokens"] != 2 || c["held"] != 1 || c["queued"] != 1 {
		t.Errorf("counts %v, want two last tokens, one held and one queued", c)
	}
	wantFinding(t, d, "server", driver.OK, "master")
	wantFinding(t, d, "rights", driver.OK, `"default"`)
}

func TestDiagnoseSettings(t *testing.T) {
	server := testsvc.Redis(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	admin := plain(t, server)
	d := diagnose(t, server.URL)
	wantOnly(t, d, "memory", "persistence")
	wantFinding(t, d, "memory", driver.Warn, "maxmemory-policy allkeys-lru", "set maxmemory-policy noeviction")
	wantFinding(t, d, "persistence", driver.Warn, "none", "restart", "appendonly yes")

	do(t, admin, "CONFIG SET maxmemory-policy noeviction")
	do(t, admin, "CONFIG SET save", "3600 1")
	do(t, admin, "CONFIG SET min-replicas-to-write 0")
	d = diagnose(t, server.URL)
	wantOnly(t, d)
	wantFinding(t, d, "memory", driver.OK, "of 100 MiB")
	wantFinding(t, d, "persistence", driver.OK, "save 3600 1")
	wantFinding(t, d, "replicas", driver.OK, "none", "min-replicas-to-write 0")

	do(t, admin, "CONFIG SET maxmemory 0")
	do(t, admin, "CONFIG SET maxmemory-policy allkeys-lru")
	wantFinding(t, diagnose(t, server.URL), "memory", driver.OK, "nothing is evicted")
}

func TestDiagnoseTokensAhead(t *testing.T) {
	server := testsvc.Redis(t, persistent...)
	admin := plain(t, server)
	for name, lead := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		do(t, admin, "SET", keyspace{}.fence(name), fmt.Sprint(time.Now().Add(lead).UnixMicro()))
	}
	d := diagnose(t, server.URL)
	wantOnly(t, d, "tokens")
	f := wantFinding(t, d, "tokens", driver.Warn, `"ahead"`, "clock")
	if lead := f.Measures["lead"]; lead < 59*time.Minute || lead > time.Hour {
		t.Errorf("lead %s, want an hour", lead)
	}
}

// TestDiagnoseSample checks that only a sample of a large store is read.
func TestDiagnoseSample(t *testing.T) {
	server := testsvc.Redis(t, persistent...)
	admin := plain(t, server)
	do(t, admin, "EVAL", `for i = 1, 20000 do redis.call('SET', 'holdfast:{n' .. i .. '}:fence:n' .. i, '1') end`, "0")
	do(t, admin, "CONFIG RESETSTAT")
	f := wantFinding(t, diagnose(t, server.URL), "keys", driver.OK, "in a sample")
	if n := f.Counts["last_tokens"]; n < 1024 || n > 2*1024 {
		t.Errorf("%d names, want about 1024", n)
	}
	if scans := commandStats(t, admin)["scan"]; scans > 8192/rediscore.ScanStep+1 {
		t.Errorf("%d scans", scans)
	}
}

func TestDiagnoseRights(t *testing.T) {
	server := testsvc.Redis(t, persistent...)
	admin := plain(t, server)
	url := strings.Replace(server.URL, "redis://", "redis://guest:pw@", 1)
	for _, c := range []struct {
		rights string
		not    []string // keys of the findings that are problems
		key    string
		level  driver.Level
		texts  []string
	}{
		{"~* &* +@all -publish", []string{"messages"}, "messages", driver.Warn, []string{`"guest"`, "may not run publish", "+publish"}},
		{"~* &* +@all -subscribe", []string{"messages"}, "messages", driver.Warn, []string{"may not run subscribe"}},
		{"~* resetchannels +@all", []string{"messages"}, "messages", driver.Warn, []string{"channels", "&holdfast:inbox:0:*"}},
		{"~* &* +@all -evalsha", []string{"rights", "locks", "keys", "onetime"}, "rights", driver.Fail, []string{"may not run evalsha: give it +evalsha"}},
		{"~* &* +@all -zadd -pttl", []string{"rights", "locks", "onetime"}, "rights", driver.Fail, []string{"may not run pttl, zadd: give it +pttl +zadd"}},
		{"~* &* +@all -set -hset", []string{"rights", "locks", "onetime"}, "rights", driver.Fail, []string{"may not run set, hset:"}},
		{"~* &* +@all -set", []string{"rights", "locks", "onetime"}, "rights", driver.Fail, []string{"may not run set:"}},
		// No check creates a key that it could not delete.
		{
			"~* &* +@all -set -del -hdel", []string{"rights", "locks", "onetime"},
			"rights", driver.Fail, []string{"may not run set, hdel, del:"},
		},
		{"~* &* +@all -info -config", []string{"server"}, "server", driver.Warn, []string{"not allowed to look"}},
		{"~* &* +@all -config", nil, "replicas", driver.OK, []string{"not allowed to look at min-replicas-to-write"}},
		{"~* &* +@all -acl", nil, "rights", driver.OK, []string{"this user may"}},
		{"~other* &* +@all", []string{"rights", "locks", "keys", "onetime"}, "rights", driver.Fail, []string{"keys such as", "~*", "prefix"}},
		{
			"~holdfast-doctor-* ~holdfast:{holdfast-doctor-* &* +@all", []string{"rights", "onetime", "keys"},
			"rights", driver.Fail, []string{"keys such as \"holdfast:{", "}:onetime:", "give it ~*"},
		},
		{"~* &* +@all -scan", []string{"rights", "keys"}, "keys", driver.Warn, []string{"not allowed to look"}},
		{"~* &* +@all -time", []string{"rights", "locks", "clock", "keys"}, "clock", driver.Warn, []string{"not allowed to look"}},
	} {
		t.Run(c.rights, func(t *testing.T) {
			do(t, admin, "ACL SETUSER guest reset on >pw "+c.rights)
			drivertest.Cycle(t, open(t, server.URL), "known")
			before := dump(t, admin)
			d := diagnose(t, url)
			wantOnly(t, d, c.not...)
			wantFinding(t, d, c.key, c.level, c.texts...)
			if c.level == driver.Fail {
				wantIs(t, "the finding", wantFinding(t, d, c.key, c.level).Err, driver.ErrPermission)
			}
			if after := dump(t, admin); len(before) != len(after) {
				t.Errorf("the store was %v and is %v", before, after)
			}
		})
	}
}

// TestDiagnoseReplica checks the finding that a replica cannot grant locks.
func TestDiagnoseReplica(t *testing.T) {
	server := testsvc.Redis(t, persistent...)
	do(t, plain(t, server), "REPLICAOF 127.0.0.1 1")
	d := diagnose(t, server.URL)
	wantIs(t, "locks", wantFinding(t, d, "locks", driver.Fail, "read-only replica").Err, driver.ErrUnavailable)
	wantFinding(t, d, "server", driver.OK, "replica")
}

func TestDiagnoseGone(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	e := open(t, server.URL)
	server.Kill()
	_, err := e.Diagnose(t.Context(), driver.DiagnoseRequest{TTL: time.Second})
	wantIs(t, "diagnose without a server", err, driver.ErrUnavailable)
	server.Restart()
	silent := open(t, server.URL)
	server.Stop()
	began := time.Now()
	_, err = silent.Diagnose(t.Context(), driver.DiagnoseRequest{TTL: time.Second})
	wantIs(t, "diagnose with a silent server", err, driver.ErrUnavailable)
	if took := time.Since(began); took > 2*doctor.Limit {
		t.Errorf("it took %s", took)
	}
	_ = silent.Close()
	_, err = silent.Diagnose(t.Context(), driver.DiagnoseRequest{TTL: time.Second})
	wantIs(t, "diagnose after Close", err, driver.ErrClosed)
}

func TestDiagnoseSentinel(t *testing.T) {
	t.Parallel()
	g := testsvc.Sentinel(t, persistent...)
	d := diagnose(t, g.URL)
	wantOnly(t, d, "replicas")
	wantFinding(t, d, "replicas", driver.Warn, "cut off", "min-replicas-to-write 0")
	must(t, g.Servers[0], "CONFIG", "SET", "min-replicas-to-write", "1")
	d = diagnose(t, g.URL)
	wantOnly(t, d)
	wantFinding(t, d, "sentinels", driver.OK, "3 of 3 name the master "+g.Servers[0].Addr)
	wantFinding(t, d, "clocks", driver.OK)
	if n := wantFinding(t, d, "replicas", driver.OK).Counts["replicas"]; n != 2 {
		t.Errorf("%d replicas, want 2", n)
	}
	if n := count(d, "server"); n != 3 {
		t.Errorf("%d servers, want 3", n)
	}
	if n := count(d, "round_trip"); n != 1 {
		t.Errorf("%d round trips, want that of the master", n)
	}

	g.Sentinels[1].Kill()
	g.Sentinels[2].Kill()
	e := open(t, g.URL)
	drivertest.Eventually(t, "the quorum is lost", func() bool {
		_, err := g.Sentinels[0].Do("SENTINEL", "CKQUORUM", testsvc.MasterName)
		return err != nil
	})
	d, err := e.Diagnose(t.Context(), driver.DiagnoseRequest{TTL: time.Second, URL: g.URL})
	if err != nil {
		t.Fatal(err)
	}
	wantOnly(t, d, "sentinel")
	wantFinding(t, d, "sentinel", driver.Warn, "enough others")
	wantFinding(t, d, "sentinels", driver.OK, "1 of 3")
}

func count(d driver.Diagnosis, key string) (n int) {
	for _, f := range d.Findings {
		if f.Key == key {
			n++
		}
	}
	return n
}

// gone reports whether a node of a cluster knows that another one is down.
func gone(nodes, addr string) bool {
	for line := range strings.Lines(nodes) {
		if strings.Contains(line, " "+addr) {
			return strings.Contains(line, "fail") || strings.Contains(line, "disconnected")
		}
	}
	return true
}

func TestDiagnoseCluster(t *testing.T) {
	testsvc.Long(t)
	t.Parallel()
	c := testsvc.RedisCluster(t, persistent...)
	e := open(t, c.URL)
	drivertest.Cycle(t, e, "a")
	drivertest.Eventually(t, "the client knows all nodes", func() bool { return len(e.Store().Conn().Nodes()) == 6 })
	d, err := e.Diagnose(t.Context(), driver.DiagnoseRequest{TTL: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	wantOnly(t, d)
	wantFinding(t, d, "slots", driver.OK, "16384")
	wantFinding(t, d, "masters", driver.OK, "3, each with a replica")
	wantFinding(t, d, "clocks", driver.OK)
	if n := wantFinding(t, d, "keys", driver.OK).Counts["last_tokens"]; n != 1 {
		t.Errorf("%d last tokens, want 1", n)
	}
	if n := count(d, "server"); n != 6 {
		t.Errorf("%d servers, want 6", n)
	}

	c.Replicas[1].Kill()
	drivertest.Eventually(t, "every node knows that the replica is gone", func() bool {
		for _, s := range []*testsvc.Server{c.Masters[0], c.Masters[1], c.Masters[2], c.Replicas[0], c.Replicas[2]} {
			if nodes, err := s.Do("CLUSTER", "NODES"); err != nil || !gone(nodes, c.Replicas[1].Addr) {
				return false
			}
		}
		return true
	})
	// The cluster client sends a command without a key to any node, including a dead one.
	for range 2 {
		d = diagnose(t, c.URL)
		wantFinding(t, d, "masters", driver.Warn, c.Masters[1].Addr, "without a replica")
		wantFinding(t, d, "rights", driver.OK)
		wantFinding(t, d, "messages", driver.OK)
	}
}

// TestDiagnoseSlots checks a cluster that does not serve all names.
func TestDiagnoseSlots(t *testing.T) {
	t.Parallel()
	server := cluster(t)
	do(t, plain(t, server), "CONFIG SET cluster-require-full-coverage no")
	do(t, plain(t, server), "CLUSTER DELSLOTS 5")
	e := engineOn(t, clusterClient(t, server), nil)
	defer func() { _ = e.Close() }()
	d, err := e.Diagnose(t.Context(), driver.DiagnoseRequest{TTL: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	wantIs(t, "slots", wantFinding(t, d, "slots", driver.Fail, "16383 of 16384").Err, driver.ErrUnavailable)
}

// TestDiagnoseTLS checks that the servers of a URL are reached with the same TLS options.
func TestDiagnoseTLS(t *testing.T) {
	server, files := testsvc.RedisTLS(t, persistent...)
	wantOnly(t, diagnose(t, server.URL+"?tls_ca="+files.CA+"&tls_cert="+files.Cert+"&tls_key="+files.Key))
}

// TestDiagnoseWrongAnswers checks that a server that runs scripts wrongly is found. Here it runs
// other scripts.
func TestDiagnoseWrongAnswers(t *testing.T) {
	server := testsvc.Redis(t, persistent...)
	for _, c := range []struct {
		file, text string // the script, and the text that replaces it
		key, says  string
	}{
		{"acquire", "return {1, 7, 0, ''}", "locks", "fails"},
		{"extend", "return {0}", "locks", "extend fails"},
		{"vault_redeem", "return {2, 'probe'}", "onetime", "redeem fails"},
		{"vault_revoke", "return 1", "onetime", "revoke fails"},
		{"vault_peek", "return {1, 3600000, 'probe'}", "onetime", "peek fails"},
	} {
		t.Run(c.file, func(t *testing.T) {
			e := spoilt(t, server.URL, c.file, c.text)
			d, err := e.Diagnose(t.Context(), driver.DiagnoseRequest{TTL: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			wantFinding(t, d, c.key, driver.Fail, c.says)
		})
	}
}

// A wrong is a connection that sends another script in place of one.
type wrong struct {
	rediscore.Conn
	file, text string
}

// EvalSHA makes the engine send every script in full.
func (w *wrong) EvalSHA(context.Context, string, []string, []string) (any, error) {
	return nil, rediscore.ReplyError("NOSCRIPT")
}

func (w *wrong) EvalInts(context.Context, string, []string, []string, []int64) ([]int64, error) {
	return nil, rediscore.ReplyError("NOSCRIPT")
}

func (w *wrong) Do(ctx context.Context, c rediscore.Command) (any, error) {
	if c.Words[0] == "EVAL" && strings.Contains(c.Words[1], "\n-- "+w.file+".lua: ") {
		c.Words[1] = w.text
	}
	return w.Conn.Do(ctx, c)
}

// spoilt returns an engine on a server that runs text in place of the script that ends with file.
func spoilt(t *testing.T, url, file, text string) *Engine {
	t.Helper()
	e := engineOnConn(t, &wrong{open(t, url).Store().Conn(), file, text})
	t.Cleanup(func() { _ = e.Close() })
	return e
}
