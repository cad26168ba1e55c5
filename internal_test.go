package holdfast

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/clock"
	"github.com/holdfast-locks/holdfast/internal/places"
	"github.com/holdfast-locks/holdfast/internal/self"
)

// This file contains access to internals for the tests of package holdfast_test, and the tests of
// internals other than the tables of lease_term_test.go.

// SetBootClock replaces the boot-time clock of a client without leases.
func SetBootClock(c *Client, boot func() time.Duration) {
	SetClocks(c, boot, clock.None)
}

// SetClocks replaces the boot-time clock and the raw clock of a client without leases.
func SetClocks(c *Client, boot, raw func() time.Duration) {
	c.boot.Init(boot, raw, 0)
	c.leases.watchSuspensions()
}

// RecentTurns returns how many names the client remembers for fair turns.
func RecentTurns(c *Client) int { return c.turns.Names() }

// SetEveryClock replaces the clock of a replica that calls Every.
func SetEveryClock(o *EveryOptions, clock func() time.Time) { o.clock = clock }

// LossDuringHandOn passes a loss to the client as if the client had looked up the lease just before
// its turn was handed on.
func LossDuringHandOn(c *Client, before *Lease, loss driver.Loss) {
	c.leases.mu.Lock()
	c.leases.rivals[before.name] = before
	c.leases.mu.Unlock()
	c.onLoss(loss)
}

// CohortsOf returns how many cohorts the client knows.
func CohortsOf(c *Client) int {
	c.cohorts.mu.Lock()
	defer c.cohorts.mu.Unlock()
	return len(c.cohorts.all)
}

// TestCheck checks that Check refuses invalid options without a client.
func TestCheck(t *testing.T) {
	for name, o := range map[string]*AcquireOptions{
		"TTL":     {TTL: time.Millisecond},
		"MaxWait": {MaxWait: -1},
		"reason":  {Reason: "a\nb"},
		"long":    {Reason: strings.Repeat("a", 4097)},
		"label":   {Labels: map[string]string{"key": "a\xff"}},
	} {
		if err := o.Check(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (&AcquireOptions{TTL: time.Second, Reason: "why", Labels: map[string]string{"key": "value"}}).Check(); err != nil {
		t.Error(err)
	}
	for name, o := range map[string]*OnceOptions{
		"Retention":   {Retention: time.Millisecond},
		"MaxResult":   {MaxResult: MaxOnceResult + 1},
		"Fingerprint": {Fingerprint: strings.Repeat("a", 257)},
		"text":        {Fingerprint: "a\tb"},
		"Await":       {Await: -1},
	} {
		if err := o.Check(); !errors.Is(err, ErrInvalid) {
			t.Errorf("once: %s: %v", name, err)
		}
	}
	if err := (&OnceOptions{Fingerprint: "a hash"}).Check(); err != nil {
		t.Error(err)
	}
}

// TestLocalHolder checks that the client describes this process as the holder unless the caller
// sets the holder.
func TestLocalHolder(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	here := self.Holder(Holder{})
	if !strings.HasPrefix(here.Program, "holdfast.test") || here.User == "" || here.Host != host || here.PID != os.Getpid() {
		t.Errorf("this process is %+v", here)
	}
	run := here
	run.Program = "deploy.sh"
	for name, test := range map[string]struct{ given, want Holder }{
		"nothing":     {Holder{}, here},
		"the program": {Holder{Program: "deploy.sh"}, run},
		"a person":    {Holder{Person: true}, Holder{Host: host, User: here.User, Person: true}},
		"a label":     {Holder{Label: "worker 7"}, Holder{Label: "worker 7"}},
		"a host":      {Holder{Host: "web-3"}, Holder{Host: "web-3"}},
	} {
		o := (&Options{Holder: test.given}).withDefaults()
		if got, want := o.Holder, test.want; got.String() != want.String() || got.Host != want.Host || got.PID != want.PID || got.User != want.User || got.Program != want.Program {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if who := here.String(); who != here.User+"@"+host+" (pid "+strconv.Itoa(os.Getpid())+", "+here.Program+")" {
		t.Errorf("it is told as %q", who)
	}
	if driver.CheckHolder(here) != nil {
		t.Error("it cannot be told")
	}
}

// computes finds arithmetic with deadlines. Choosing the first or the last of several is not
// arithmetic.
var computes = regexp.MustCompile(`\.(AsOf|Reached|expiresBy)\(|\b(now|sent|queued|i)\.Until\(|\b(trusted|ttlFor)\(` +
	`|(deadline|expiry|renewAt|[els]\.Deadline\(\))(\.Mono)?\.(Add|Sub|After|Before)\(` +
	`|\.(Sub|After|Before)\([a-z.]*(deadline|expiry|renewAt|[els]\.Deadline)|time\.(Until|Since)\([a-z.]*(deadline|expiry|[els]\.Deadline)`)

// TestOnlyTheTermComputesDeadlines checks that only lease_term.go does arithmetic with deadlines.
func TestOnlyTheTermComputesDeadlines(t *testing.T) {
	for _, line := range []string{
		"time.Until(l.Deadline())", "time.Until(l.term.deadline.Mono)", "now.Sub(l.term.expiry)", "l.Deadline().Add(d)",
		"now.Mono.Before(t.deadline.Mono)", "lease.Deadline().After(last)", "now.Until(l.term.deadline)", "sent.Add(trusted(ttl))",
	} {
		if !computes.MatchString(line) {
			t.Errorf("%s is not found", line)
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		switch lines := computes.FindAllString(string(text), -1); {
		case strings.HasSuffix(file, "_test.go"):
		case file == "lease_term.go":
			found += len(lines)
		case len(lines) > 0:
			t.Errorf("%s computes deadlines: %q", file, lines)
		}
	}
	if found < 20 {
		t.Errorf("%d computations in lease_term.go, want at least 20: are they read?", found)
	}
}

// TestTTLForIsTheInverseOfTrusted checks that ttlFor returns the shortest TTL that is trusted for
// d, to the millisecond. INVARIANT I3.
func TestTTLForIsTheInverseOfTrusted(t *testing.T) {
	for range 10_000 {
		d := rand.N(MaxTTL / 2)
		ttl := ttlFor(d)
		if trusted(ttl) < d || trusted(ttl-ms) >= d+ms {
			t.Fatalf("a TTL of %s is trusted for %s, want %s", ttl, trusted(ttl), d)
		}
	}
}

// TestTTLTable checks that the table in docs/choosing.md contains the results of the code.
func TestTTLTable(t *testing.T) {
	page, err := os.ReadFile("docs/choosing.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| (\d\S*) \| (\S+) \| (\S+) \| (\S+) \| (\S+) \|$`).FindAllStringSubmatch(string(page), -1)
	if len(rows) < 4 {
		t.Fatalf("docs/choosing.md has %d rows of TTLs", len(rows))
	}
	for _, row := range rows {
		ttl, err := time.ParseDuration(row[1])
		if err != nil {
			t.Fatal(err)
		}
		now := zero
		term, _ := newTerm(&AcquireOptions{TTL: ttl}, ttl).granted(now, now, hurriedPause)
		lasts, renewed := now.Until(term.deadline), term.renewAt.Sub(now.Mono)
		ms := func(d time.Duration) string { return d.Truncate(time.Millisecond).String() }
		want := strings.Join([]string{ms(ttl), ms(lasts), ms(renewed), ms(lasts - renewed), ms(term.expiry.Sub(now.Mono))}, " | ")
		if got := strings.Join(row[1:], " | "); got != want {
			t.Errorf("docs/choosing.md says %s, and the code %s", got, want)
		}
	}
}

// TestTermAgainstStores checks that, whatever happens to a lease and in whatever order replies
// arrive, it is never trusted for longer than a store keeps it that carried out each request as
// early as possible. It is also never taken as expired before a store has ended it that carried out
// each request as late as possible. The clocks of both sides are slewed, as far as Linux allows.
// Without a boot-time clock, only one side's is slewed. INVARIANT I3.
func TestTermAgainstStores(t *testing.T) {
	for range 20_000 {
		checkAgainstStores(t)
		if t.Failed() {
			return
		}
	}
}

func checkAgainstStores(t *testing.T) {
	o := AcquireOptions{TTL: MinTTL << rand.IntN(13), LockDelay: []time.Duration{0, 7 * sec}[rand.IntN(2)], MaxHold: []time.Duration{0, time.Hour}[rand.IntN(2)]}
	o.TTL += ceilMS(rand.N(o.TTL))
	now, story := at(0), []string{}
	var store time.Duration // the time on the store's clock
	rates := slewing{0.9 + 0.2*rand.Float64(), 0.9 + 0.2*rand.Float64()}
	two := rand.IntN(4) > 0 // the holder has two clocks
	if !two {
		now.Boot = 0
		*[]*float64{&rates.holder, &rates.store}[rand.IntN(2)] = 1
	}
	// pass lets some time pass, during which the machine may sleep.
	pass := func(longest time.Duration) {
		d := rand.N(longest)
		now.Mono = now.Mono.Add(times(d, rates.holder))
		if two {
			if rand.IntN(10) == 0 {
				d += rand.N(longest + sec/2)
			}
			now.Boot += d
		}
		store += times(d, rates.store)
	}
	pass(sec)
	sent, received := now, store
	pass(o.TTL / 2)
	var l term
	var ok bool
	earliest := received + o.TTL // the earliest expiry in the store, by the requests that were answered
	latest := now.Mono.Add(o.TTL + o.LockDelay)
	if waiterTTL := min(max(o.TTL, places.ShortestTTL), places.LongestTTL); rand.IntN(2) == 0 && o.LockDelay == 0 {
		l, ok = newTerm(&o, max(o.TTL, waiterTTL)).handedOver(sent, now, waiterTTL, pace)
		earliest, latest = received+waiterTTL, now.Mono.Add(waiterTTL)
	} else {
		l, ok = newTerm(&o, o.TTL+o.LockDelay).granted(sent, now, pace)
	}
	if !ok {
		return // a waiter starts over then
	}
	type request struct {
		extension
		sent     instant
		received time.Duration
	}
	var underway []request
	for range 20 {
		pass(o.TTL / 3)
		l = l.woken(now)
		if l.over(now) {
			break
		}
		if _, x, ok := l.renewing(now); ok && rand.IntN(2) == 0 {
			l = l.asked(x, now)
			underway = append(underway, request{x, now, store})
		}
		for i := len(underway) - 1; i >= 0; i-- {
			if rand.IntN(2) == 0 {
				continue
			}
			r := underway[i]
			underway = append(underway[:i:i], underway[i+1:]...)
			l = l.landed(r.extension, false, now)
			if at := now.Mono.Add(r.stored); at.After(latest) {
				latest = at
			}
			story = append(story, fmt.Sprint("sent ", r.sent.Mono.Sub(zero.Mono), ", answered ", now.Mono.Sub(zero.Mono), ", for ", r.ttl))
			if rand.IntN(4) == 0 {
				l = l.failed(errNoReply, now, pace) // its reply was lost
				continue
			}
			l = l.renewed(r.extension, r.sent, now, pace)
			earliest = max(earliest, r.received+r.ttl)
		}
		// The store's clock and the boot-time clock also advance while the machine sleeps.
		left := times(l.deadline.Mono.Sub(now.Mono), 1/rates.holder)
		if two {
			left = min(left, l.deadline.Boot-now.Boot)
		}
		if stored := times(earliest-store, 1/rates.store); left > stored {
			t.Errorf("trusted for %s, kept for %s: %s", left, stored, strings.Join(story, "; "))
		}
		if by := l.expiresBy(now.Mono); len(underway) == 0 && rates.holder <= rates.store && by.Before(latest) {
			t.Errorf("taken to be gone %s before it is: %s", latest.Sub(by), strings.Join(story, "; "))
		}
		if o.MaxHold > 0 && now.Until(l.deadline) > now.Until(l.began.Add(o.MaxHold)) {
			t.Errorf("trusted beyond MaxHold: %s", strings.Join(story, "; "))
		}
	}
}

var errNoReply = errors.New("no reply")

// slewing contains the rates of the clocks of both sides.
type slewing struct{ holder, store float64 }

func times(d time.Duration, rate float64) time.Duration { return time.Duration(float64(d) * rate) }
