//go:build unix

package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

func TestDoctor(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t, "--appendonly", "yes")
	status, stdout, stderr := run(t, server.URL, "doctor")
	if status != 0 || strings.Contains(stdout, "\nwarn ") || !strings.Contains(stdout, "\nok  locks ") || stderr != "" {
		t.Errorf("a good store: status %d\n%s%s", status, stdout, stderr)
	}
	redis(t, server, "CONFIG", "SET", "maxmemory", "100mb")
	redis(t, server, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	status, stdout, _ = run(t, server.URL, "doctor")
	if status != 1 || !strings.Contains(stdout, "\n\n"+server.Addr+"\n") || !strings.Contains(stdout, "\nwarn  memory ") || !strings.HasSuffix(stdout, "\n0 failures, 1 warning\n") || !strings.Contains(stdout, "allkeys-lru") {
		t.Errorf("a store that evicts: status %d\n%s", status, stdout)
	}
}

func TestDoctorJSON(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t, "--requirepass", "s3cret")
	url := "redis://:s3cret@" + server.Addr
	status, stdout, stderr := run(t, url, "doctor", "--json", "--ttl", "10s")
	var got struct {
		Store    string
		TTLMS    int64 `json:"ttl_ms"`
		Level    string
		Findings []struct {
			Key, Level, Server, Text string
			Measures                 map[string]float64
		}
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	if status != 1 || got.Level != "warn" || got.TTLMS != 10000 || strings.Contains(stdout+stderr, "s3cret") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
	found := false
	for _, f := range got.Findings {
		if f.Key != "round_trip" {
			continue
		}
		found = true
		if ms := f.Measures["round_trip_ms"]; ms <= 0 || ms > 5000 || f.Measures["ttl_ms"] != 10000 || f.Server != server.Addr {
			t.Errorf("%+v", f)
		}
	}
	if !found {
		t.Errorf("no round trip in %s", stdout)
	}
}

func TestDoctorStatus(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	redis(t, server, "ACL", "SETUSER", "guest", "on", ">secret", "~*", "&*", "+@all", "-evalsha")
	status, stdout, _ := run(t, "redis://guest:secret@"+server.Addr, "doctor")
	if status != 77 || !strings.Contains(stdout, "may not run evalsha") {
		t.Errorf("without a right: status %d\n%s", status, stdout)
	}
	wantRun(t, 77, "redis://guest:wrong@"+server.Addr, "doctor")
	wantRun(t, 78, server.URL+"/x", "doctor")
	wantRun(t, 78, "memory:", "doctor")
	wantRun(t, 64, server.URL, "doctor", "--ttl", "9ms")
	wantRun(t, 64, server.URL, "doctor", "extra")
	server.Stop()
	began := time.Now()
	wantRun(t, 69, server.URL, "doctor")
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("a silent store took %s", took)
	}
	server.Kill()
	wantRun(t, 69, server.URL, "doctor")
}

func TestDoctorFile(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := run(t, "sqlite://"+t.TempDir()+"/locks.db", "doctor")
	if status != 0 || !strings.Contains(stdout, "ok  file system ") || !strings.Contains(stdout, "ok  schema ") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
}
