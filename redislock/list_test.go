package redislock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/rediscore"
)

func TestList(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL+"?prefix=p*:"), plain(t, server)
	other := open(t, server.URL+"?prefix=pp:")
	drivertest.Granted(t, other, drivertest.Request("a/elsewhere", time.Minute))
	alone := 0
	do(t, admin, "SET p*:only mine PX 60000")
	queued(t, e, drivertest.Request("only", time.Minute), time.Minute, 1)
	do(t, admin, "DEL p*:only")
	for lock, err := range e.List(t.Context(), "") { // with few names, each is read first
		if err != nil || lock.Name != "only" || lock.QueueLength != 1 {
			t.Errorf("listed: %+v, %v, want the name with nothing but a queue", lock, err)
		}
		alone++
	}
	if alone != 1 {
		t.Errorf("%d names are listed, want the one with nothing but a queue", alone)
	}
	const many = 500
	want := map[string]uint64{}
	for i := range many {
		name := fmt.Sprintf("a/%d", i)
		want[name] = drivertest.Granted(t, e, drivertest.Request(name, time.Minute))
	}
	for _, odd := range []string{"a/}{", "a/{x}", "a/*", "a/[b]", "a/ :fence:", "a/}:fence:b", `a/\`} {
		want[odd] = drivertest.Granted(t, e, drivertest.Request(odd, time.Minute))
	}
	drivertest.Granted(t, e, drivertest.Request("b/other", time.Minute))
	drivertest.Cycle(t, e, "a/released")
	do(t, admin, "SET p*:a/foreign mine PX 60000")
	queued(t, e, drivertest.Request("a/foreign", time.Minute), time.Minute, 1)
	want["a/foreign"] = 0
	do(t, admin, "SET p*:a/lost mine PX 60000")
	queued(t, e, drivertest.Request("a/lost", time.Minute), time.Minute, 1)
	do(t, admin, "DEL p*:a/lost")
	drivertest.Granted(t, e, shared("a/shared", time.Minute))
	want["a/shared"] = drivertest.Granted(t, e, shared("a/shared", time.Minute))
	drivertest.Granted(t, e, drivertest.Request("a/type", time.Minute))
	do(t, admin, "DEL p*:a/type")
	do(t, admin, "LPUSH p*:a/type x")
	do(t, admin, "SET p*:holdfast:{junk}:fence:a/junk 1")

	do(t, admin, "CONFIG RESETSTAT")
	got, lost := map[string]uint64{}, false
	for lock, err := range e.List(t.Context(), "a/") {
		if err != nil {
			t.Fatal(err)
		}
		if lock.Name == "a/lost" && len(lock.Holders) == 0 && lock.QueueLength == 1 && !lost {
			lost = true
			continue
		}
		if _, twice := got[lock.Name]; twice || len(lock.Holders) == 0 || len(lock.Queue) != 0 {
			t.Errorf("listed: %+v, before: %v", lock, twice)
			continue
		}
		got[lock.Name] = lock.Holders[len(lock.Holders)-1].Token
	}
	stats := commandStats(t, admin)
	if stats["keys"] != 0 || stats["scan"] < many/rediscore.ScanStep {
		t.Errorf("commands: %v", stats)
	}
	if !lost {
		t.Error("a name with nothing but a queue is not listed")
	}
	for name, token := range want {
		if listed, ok := got[name]; !ok || listed != token {
			t.Errorf("%q has token %d, want %d", name, got[name], token)
		}
		delete(got, name)
	}
	if len(got) != 0 {
		t.Errorf("also listed: %v", got)
	}
	for _, prefix := range []string{"a/*", "a/[b]", `a/\`, "a/}:fence"} {
		n := 0
		for lock, err := range e.List(t.Context(), prefix) {
			if n++; err != nil || !strings.HasPrefix(lock.Name, prefix) {
				t.Errorf("prefix %s: %q, %v", prefix, lock.Name, err)
			}
		}
		if n != 1 {
			t.Errorf("prefix %s: %d locks, want 1", prefix, n)
		}
	}
	for _, err := range e.List(t.Context(), "") {
		if err != nil {
			t.Error(err)
		}
		break // the list must end here
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	for _, err := range e.List(ctx, "") {
		if n++; n == 1 {
			cancel()
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if n == 0 || n > many {
		t.Errorf("%d locks after the context ended", n)
	}
}
