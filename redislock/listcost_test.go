package redislock

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// TestListOfRememberedNames checks that for names with only a token a list reads whether they are
// used, many with one command, and nothing else.
func TestListOfRememberedNames(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	const remembered, held = 1000, 10
	for i := range remembered {
		drivertest.Cycle(t, e, fmt.Sprint("remembered/", i))
	}
	for i := range held {
		drivertest.Granted(t, e, drivertest.Request(fmt.Sprint("held/", i), time.Hour))
	}
	do(t, admin, "CONFIG RESETSTAT")
	n := 0
	for lock, err := range e.List(t.Context(), "") {
		if n++; err != nil || len(lock.Holders) != 1 {
			t.Fatal(lock, err)
		}
	}
	stats := commandStats(t, admin)
	const together = 16 // in used.lua
	steps := stats["scan"]
	exists := remembered/together + steps + (together+1)*held
	if n != held || stats["exists"] > exists || stats["get"] > 2*held || stats["pttl"] > held || stats["evalsha"] > 2*steps {
		t.Errorf("%d locks in the list, which was %v; want %d EXISTS at most", n, stats, exists)
	}
}

// TestListOfHeldNames checks that for plain locks a list reads their keys and last tokens, many
// with one script, and nothing else.
func TestListOfHeldNames(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	const held = 2000
	for i := range held {
		drivertest.Granted(t, e, drivertest.Request(fmt.Sprint("held/", i), time.Hour))
	}
	do(t, admin, "CONFIG RESETSTAT")
	n := 0
	for lock, err := range e.List(t.Context(), "") {
		if n++; err != nil || len(lock.Holders) != 1 {
			t.Fatal(lock, err)
		}
	}
	stats := commandStats(t, admin)
	scripts := stats["scan"] + 1 // the first step finds out whether it is worth it
	if n != held || stats["get"] > 2*held || stats["pttl"] > held || stats["exists"] > held/2 || stats["evalsha"] > scripts {
		t.Errorf("%d locks in the list, which was %v; want %d scripts at most", n, stats, scripts)
	}
}

// TestListSaysAsInspect checks that a list reports every kind of value as Inspect does.
func TestListSaysAsInspect(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	const foreign, strange, unusable = "foreign", "strange", "unusable"
	for _, name := range []string{foreign, strange, unusable} {
		drivertest.Granted(t, e, drivertest.Request(name, time.Hour))
	}
	do(t, admin, "SET", foreign, "another program's", "KEEPTTL")
	do(t, admin, "SET", strange, "999 "+string(lockinfo.NewLeaseID())+" 1 1 1 {}", "KEEPTTL")
	do(t, admin, "SET", keyspace{}.fence(unusable), "1 2", "KEEPTTL")
	kept := drivertest.Request("kept", time.Hour)
	drivertest.Granted(t, e, kept)
	if err := e.Release(t.Context(), driver.ReleaseRequest{Name: kept.Name, LeaseID: kept.LeaseID, KeepFor: time.Hour}); err != nil {
		t.Fatal(err)
	}
	endless := drivertest.Request("endless", time.Hour)
	drivertest.Granted(t, e, endless)
	do(t, admin, "PERSIST", endless.Name)
	want := map[string]bool{foreign: true, "kept": true, "endless": true}
	for lock, err := range e.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		inspected, err := e.Inspect(t.Context(), lock.Name)
		if err != nil || len(inspected.Holders) != 1 || len(lock.Holders) != 1 || !want[lock.Name] {
			t.Errorf("listed: %+v; inspected: %+v, %v", lock, inspected, err)
			continue
		}
		delete(want, lock.Name)
		for _, h := range []*lockinfo.Holding{&lock.Holders[0], &inspected.Holders[0]} {
			h.Since, h.ExpiresIn = h.Since.Round(time.Minute), h.ExpiresIn.Round(time.Minute)
		}
		if fmt.Sprintf("%+v", lock) != fmt.Sprintf("%+v", inspected) {
			t.Errorf("listed: %+v; inspected: %+v", lock, inspected)
		}
	}
	if len(want) > 0 {
		t.Errorf("not listed: %v", want)
	}
}
