//go:build unix

package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// trio starts three independent servers, and returns the URL of a quorum of them.
func trio(t *testing.T, params string, args ...string) (servers []*testsvc.Server, url string) {
	t.Helper()
	var addrs []string
	for range 3 {
		s := testsvc.Redis(t, args...)
		servers = append(servers, s)
		addrs = append(addrs, s.Addr)
	}
	return servers, "quorum+redis://" + strings.Join(addrs, ",") + params
}

// TestQuorumScripts runs testdata/quorum/*.txt, all on one quorum.
func TestQuorumScripts(t *testing.T) {
	_, url := trio(t, "?max_ttl=1m&prefix=app:", "--appendonly", "yes")
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "quorum"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", quickExit)
			env.Setenv("HOLDFAST_STORE", url)
			return nil
		},
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"status": status},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// TestQuorumSurvivesOne: a run continues while one server is dead or silent. If two are dead, the
// run is stopped in time, and no new run starts.
func TestQuorumSurvivesOne(t *testing.T) {
	t.Parallel()
	servers, url := trio(t, "")
	wantRun(t, 1, url, "doctor", "--admit") // it warns that there is no persistence
	h := hold(t, url, "job", "--ttl", "2s")
	servers[0].Stop()
	if got := show(t, url, "job"); !got.Held {
		t.Errorf("a quorum of two of three shows %+v", got)
	}
	wantRun(t, 75, url, "run", "-n", "job", "--", "true")
	wantRun(t, 0, url, "run", "-n", "other", "--", "true")
	servers[0].Cont()
	servers[1].Kill()
	wantRun(t, 75, url, "run", "-n", "job", "--", "true")
	wantRun(t, 0, url, "run", "-n", "other", "--", "true")
	h.finish()
	h.want(0)

	lost := start(t, url, "run", "--ttl", "2s", "job", "--", "sh", "-c", "echo held >&2; sleep 60")
	lost.awaitStderr("held")
	servers[0].Kill()
	lost.want(79)
	wantRun(t, 69, url, "run", "-n", "other", "--", "true")
	wantRun(t, 69, url, "run", "other", "--", "true")
	wantRun(t, 69, url, "show", "other")
	wantRun(t, 69, url, "ls")
}

// TestQuorumCredentials checks that one password is for all servers and appears in no output, and
// that each server uses the database and the prefix of the URL.
func TestQuorumCredentials(t *testing.T) {
	t.Parallel()
	servers, url := trio(t, "/3?prefix=app:", "--requirepass", "s3cret")
	secret := strings.Replace(url, "://", "://:s3cret@", 1)
	wrong := strings.Replace(url, "://", "://:wr0ng@", 1)
	for _, command := range [][]string{{"run", "job", "--", "true"}, {"show", "job"}, {"ls"}, {"doctor"}, {"doctor", "--admit"}} {
		for _, store := range []string{url, wrong} {
			if stderr := wantRun(t, 77, store, command...); strings.Contains(stderr, "wr0ng") {
				t.Errorf("%v: %q has the password", command, stderr)
			}
		}
	}
	status, stdout, stderr := run(t, secret, "doctor", "--admit", "--json")
	if status != 1 || strings.Contains(stdout+stderr, "s3cret") {
		t.Errorf("doctor: status %d\n%s%s", status, stdout, stderr)
	}
	status, stdout, stderr = run(t, secret, "run", "-v", "job", "--", "sh", "-c", "echo $HOLDFAST_LOCK_STORE")
	if status != 0 || strings.TrimSpace(stdout) != url || strings.Contains(stdout+stderr, "s3cret") {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	h := hold(t, secret, "job")
	for _, s := range servers {
		one := "redis://:s3cret@" + s.Addr
		if got := show(t, one+"/3?prefix=app:", "job"); !got.Held {
			t.Errorf("%s: %+v, want the lock in database 3 under the prefix", s.Addr, got)
		}
		if got := show(t, one, "app:job"); got.Held {
			t.Errorf("%s: %+v in database 0", s.Addr, got)
		}
	}
	h.finish()
	h.want(0)
}

// TestDoctorQuorum checks that doctor reports a problem of one member as a warning, and of two
// members as a failure.
func TestDoctorQuorum(t *testing.T) {
	t.Parallel()
	servers, url := trio(t, "?max_ttl=2m", "--appendonly", "yes")
	if status, stdout, stderr := run(t, url, "doctor", "--admit"); status != 0 {
		t.Fatalf("a good quorum: status %d\n%s%s", status, stdout, stderr)
	}
	look := func(want int) map[string]finding {
		t.Helper()
		began := time.Now()
		status, stdout, stderr := run(t, url, "doctor", "--json")
		if status != want {
			t.Errorf("status %d, want %d\n%s%s", status, want, stdout, stderr)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("it took %s", took)
		}
		var got struct{ Findings []finding }
		if err := json.Unmarshal([]byte(stdout), &got); err != nil {
			t.Fatal(err)
		}
		found := map[string]finding{}
		for _, f := range got.Findings {
			found[strings.TrimSpace(f.Key+" "+f.Server)] = f
		}
		return found
	}
	says := func(found map[string]finding, key, level, text string) {
		t.Helper()
		if f := found[key]; f.Level != level || !strings.Contains(f.Text, text) {
			t.Errorf("%s: %+v; want %s that says %q", key, f, level, text)
		}
	}
	redis(t, servers[0], "CONFIG", "SET", "maxmemory", "100mb")
	redis(t, servers[0], "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	redis(t, servers[2], "CONFIG", "SET", "appendonly", "no")
	found := look(1)
	says(found, "memory "+servers[0].Addr, "warn", "allkeys-lru")
	says(found, "persistence "+servers[2].Addr, "warn", "grants nothing")
	says(found, "quorum", "ok", "3 of 3")

	servers[2].Restart()
	found = look(1)
	says(found, "quarantine "+servers[2].Addr, "warn", "grants nothing for another")
	says(found, "quorum", "warn", "2 of 3 members grant locks, and 2 are enough: "+servers[2].Addr+" is in quarantine")
	if left := found["quarantine "+servers[2].Addr].Measures["remaining_ms"]; left < 110_000 || left > 130_000 {
		t.Errorf("%v ms of the quarantine remain, want about two minutes", left)
	}
	redis(t, servers[2], "REPLICAOF", "127.0.0.1", "1")
	found = look(1)
	says(found, "independence "+servers[2].Addr, "warn", "replica of 127.0.0.1:1")
	says(found, "quorum", "warn", "takes no part")
	redis(t, servers[2], "REPLICAOF", "NO", "ONE")

	servers[0].Stop()
	found = look(69)
	says(found, "quorum", "fail", "1 of 3")
	says(found, "quarantine "+servers[1].Addr, "ok", "over")
	servers[0].Cont()
	servers[0].Kill()
	found = look(69)
	says(found, "quorum", "fail", servers[0].Addr+" takes no part")
	wantRun(t, 69, url, "doctor", "--admit")
}

type finding struct {
	Key, Level, Server, Text string
	Measures                 map[string]float64
}

// TestDoctorOneServerTwice checks that two names of one server are not two members.
func TestDoctorOneServerTwice(t *testing.T) {
	t.Parallel()
	a, b := testsvc.Redis(t), testsvc.Redis(t)
	url := "quorum+redis://" + a.Addr + "," + b.Addr + "," + strings.Replace(a.Addr, "127.0.0.1", "localhost", 1)
	status, stdout, _ := run(t, url, "doctor", "--admit")
	if status != 78 || !strings.Contains(stdout, "\nfail  independence") || !strings.Contains(stdout, "are one server") {
		t.Errorf("status %d\n%s", status, stdout)
	}
}

// TestDoctorGroups checks that doctor examines all servers behind a URL of Sentinel or Cluster.
func TestDoctorGroups(t *testing.T) {
	t.Parallel()
	g := testsvc.Sentinel(t, "--appendonly", "yes")
	status, stdout, stderr := run(t, g.URL, "doctor")
	if status != 1 || strings.Count(stdout, "\nwarn  replicas ") != 1 || !strings.Contains(stdout, "min-replicas-to-write 1") {
		t.Errorf("a master that may go on without replicas: status %d\n%s%s", status, stdout, stderr)
	}
	redis(t, g.Master(), "CONFIG", "SET", "min-replicas-to-write", "1")
	status, stdout, stderr = run(t, g.URL, "doctor")
	if status != 0 || strings.Count(stdout, "\nok  replicas ") != 1 || strings.Count(stdout, "ok  server ") != 3 ||
		!strings.Contains(stdout, "3 of 3 name the master") {
		t.Errorf("sentinel: status %d\n%s%s", status, stdout, stderr)
	}
	c := testsvc.RedisCluster(t, "--appendonly", "yes")
	// A replica is listed when its master has heard from it.
	for end := time.Now().Add(patience); time.Now().Before(end) && strings.Count(stdout, "ok  server ") != 6; {
		status, stdout, stderr = run(t, c.URL, "doctor")
	}
	if status != 0 || strings.Count(stdout, "ok  server ") != 6 || !strings.Contains(stdout, "all 16384 are served") {
		t.Errorf("cluster: status %d\n%s%s", status, stdout, stderr)
	}
	c.Replicas[0].Kill()
	wantRun(t, 1, c.URL, "doctor")
}
