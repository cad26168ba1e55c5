//go:build web

package webtest

import (
	"flag"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/redislock"
)

// outage is how long the store is away in TestStoreAway. The promise is about -outage 40s.
var outage = flag.Duration("outage", 9*time.Second, "for how long a store is away in TestStoreAway")

// tile is a function that returns the text of a tile of the overview.
const tile = `(label) => [...document.querySelectorAll(".tile")].find((t) => t.innerText.startsWith(label))?.innerText`

// TestStoreAway checks that, while the store is away, the page reports this and that the server is
// well. The page is grey, and its times stand still. Afterwards it shows the losses.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.worker("etl")
	for i := range 3 {
		acquire(t, c, fmt.Sprint("etl/stage-", i), holdfast.AcquireOptions{TTL: 3 * time.Second})
	}
	p := open(t, s.url)
	p.expect(`^log: network: .* (50[0-9]|net::ERR_)`)
	p.await("three locks are held", `() => (`+tile+`)("Held")?.includes("3 locks")`)
	q := p.besideWith(s.url+"#/locks", p.expected)
	q.awaitText("etl/stage-2")
	began := time.Now()
	s.redis.Stop()
	for _, one := range []*tab{p, q} {
		one.await("the page says what is away, and since when", `() => /Redis does not answer since \d\d:\d\d:\d\d \(\d+ s\).*The server is well/s.test(document.querySelector(".notices").innerText)`)
		one.await("it says so in its corner", `() => document.querySelector(".connection").innerText === "store down"`)
		one.await("what it shows is grey", `() => getComputedStyle(document.querySelector("main")).filter === "grayscale(1)"`)
		old := eval[string](one, still)
		one.sleepIn(1500 * time.Millisecond)
		if now := eval[string](one, still); now != old {
			t.Errorf("it was %q, and is %q", old, now)
		}
	}
	if text := q.text(); !ok(t, `etl/stage-0`, text) || ok(t, `expired|[0-9] ms left`, text) {
		t.Errorf("the page says that leases have expired, which nobody knows: %s", text)
	}
	p.await("the store's tile says so", `() => /✕ down\s+since/.test((`+tile+`)("Store"))`)
	p.await("it comes first", `() => /✕ store down/.test(document.querySelector(".attention li")?.innerText)`)
	p.sleepIn(*outage - time.Since(began))
	s.redis.Cont()
	for _, one := range []*tab{p, q} {
		one.await("the page is current", `() => !document.querySelector(".notices .bad") && document.querySelector(".connection").innerText === "live"`)
	}
	p.await("the losses are counted", `() => /✕ (at least )?[3-9] losses/.test((`+tile+`)("Losses"))`)
	p.visit(s.url)
	p.await("the losses are counted by the server as well", `() => /✕ (at least )?[3-9] losses/.test((`+tile+`)("Losses"))`)
	p.await("somebody is to look at them", `() => /✕ lost/.test(document.querySelector(".attention").innerText)`)
}

// still is a function that returns what must not change while it is old: times and bars.
const still = `() => [...document.querySelectorAll(".tile:nth-child(7), [role=gridcell], .bar-fill")].map((e) => e.matches(".bar-fill") ? getComputedStyle(e).transform : e.innerText).join(" ")`

// TestKilledHolder checks that the page shows the loss of a lease whose process was killed.
func TestKilledHolder(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := open(t, s.url)
	run := exec.CommandContext(t.Context(), shared.holdfast, "run", "--store", s.store, "--ttl", "2s", "night/report", "--", "sleep", "600")
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	p.await("it is held", `() => (`+tile+`)("Held")?.includes("1 lock")`)
	if err := run.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = run.Wait()
	p.awaitIn(2*patience, "the loss is counted", `() => /✕ 1 loss/.test((`+tile+`)("Losses"))`)
	p.await("somebody is to look at it", `() => /✕ lost\s+night\/report/.test(document.querySelector(".attention").innerText)`)
	p.show("lock?name=night%2Freport")
	p.await("it has not been held for longer than it was", `() => /✕ expired[^]*held [1-9](\.\d)? s/.test(document.querySelector("table[aria-label^=Leases]")?.innerText)`)
}

// TestDyingLease checks that a page which is opened late shows that a lease was not renewed, by its
// bar, in figures, and in what needs attention.
func TestDyingLease(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	acquire(t, s.worker("packer"), "orders/42", holdfast.AcquireOptions{TTL: 30 * time.Second, KeepAlive: holdfast.KeepAliveOff})
	p := open(t, s.url+"#/onetime")
	p.sleepIn(21 * time.Second)
	p.visit(s.url + "#/locks")
	p.await("the bar is low", `() => /^[0-9] s left of 30 s, not renewed yet$/.test(document.querySelector(".bar-low")?.ariaValueText)`)
	p.show("overview")
	p.await("somebody is to look at it", `() => /✕ not renewed\s+orders\/42 expires in \d s/.test(document.querySelector(".attention").innerText)`)
}

// TestBlockedForMinutes checks that the overview shows many waiters that have waited for a minute,
// and the holder for which they wait.
func TestBlockedForMinutes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	nora := s.workerAs(holdfast.Holder{Host: "desk-17", User: "nora", Person: true})
	acquire(t, nora, "deploy/production", holdfast.AcquireOptions{TTL: 4 * time.Hour, KeepAlive: holdfast.KeepAliveOff, Reason: "release freeze"})
	c := s.worker("ci")
	const many = 44
	for range many {
		waitFor(t, c, "deploy/production", holdfast.AcquireOptions{TTL: time.Minute})
	}
	p := open(t, s.url)
	p.await("all is well as yet", `() => /All is well\. Looked at: 1 lock · 44 waiters/.test(document.querySelector(".attention").innerText)`)
	p.awaitIn(62*time.Second+patience, "it needs attention", `() => /✕ blocked\s+deploy\/production 44 waiting, the longest\s+1 m[\d s]* since \d\d:\d\d:\d\d\s+behind person nora@desk-17 \(a person\), hold until [\d: -]+ in 3 h 5\d m: release freeze/.test(document.querySelector(".attention").innerText)`)
	p.await("the waits count those who are waiting", `() => /p50 ≤ [125] m\s+p95 ≤ [125] m/.test((`+tile+`)("Wait\n").replaceAll("\u00a0", " "))`)
}

// TestTwoDatabases checks that the page of one database shows no locks of another.
func TestTwoDatabases(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	other, err := redislock.Open(t.Context(), s.redis.URL+"/1?history=1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	staging, err := holdfast.New(other, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = staging.Close() })
	p := open(t, s.url+"#/events")
	p.awaitText("live")
	for i := range 20 {
		acquire(t, staging, fmt.Sprint("staging/", i), holdfast.AcquireOptions{})
	}
	acquire(t, s.worker("packer"), "production/1", holdfast.AcquireOptions{})
	p.awaitText("production/1")
	for _, view := range []string{"events", "locks", "holders"} {
		p.show(view)
		p.awaitText("production/1")
		if ok(t, "staging/", p.text()) {
			t.Errorf("%s shows a lock of another database", view)
		}
	}
}

// TestImpatientClients checks that the page still shows who broke a lock, and why, after many
// clients have waited and left.
func TestImpatientClients(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.worker("ci")
	l := acquire(t, c, "deploy/production", holdfast.AcquireOptions{TTL: time.Minute})
	if _, err := c.Break(t.Context(), "deploy/production", &holdfast.BreakOptions{Token: l.Token(), Author: "ada@ops-1", Reason: "INC-77"}); err != nil {
		t.Fatal(err)
	}
	acquire(t, s.worker("successor"), "deploy/production", holdfast.AcquireOptions{TTL: time.Minute})
	for range 100 {
		_, _ = c.Acquire(t.Context(), "deploy/production", &holdfast.AcquireOptions{MaxWait: time.Millisecond})
	}
	p := open(t, s.url+"#/lock?name=deploy%2Fproduction")
	p.awaitText("✕ broken by ada@ops-1: INC-77")
	p.await("the history has the break and its victim", `() => /broken[^]*ci on deploy[^]*by ada@ops-1: INC-77/.test(document.querySelector("table[aria-label^=Leases]")?.innerText)`)
	p.await("the holder is there", `() => document.querySelector(".holders")?.innerText.includes("successor")`)
}
