//go:build web

package webtest

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// A question is one that an operator may have at night. ask goes from the overview to the answer.
// An ask that ends with an action needs safe more clicks, which confirm the action.
type question struct {
	name string
	ask  func(u *user, screen string)
	safe int // clicks that confirm
}

var questions = []question{
	{"who holds it, on which host and in which process", func(u *user, _ string) {
		u.search("etl/load")
		u.press(enter)
		u.reads(`loader on deploy@web-1 \(pid 812, worker\)`)
	}, 0},
	{"since when", func(u *user, _ string) {
		u.search("etl/load")
		u.press(enter)
		u.reads(`held [\d.]+ (s|m)[\d ms]* since \d\d:\d\d:\d\d`)
	}, 0},
	{"until when", func(u *user, _ string) {
		u.search("deploy/production")
		u.press(enter)
		u.reads(`until (\d\d-\d\d )?\d\d:\d\d:\d\d`, `in 3 h 5\d m`)
	}, 0},
	{"why do I wait, and behind whom", func(u *user, _ string) {
		u.search("ci-7")
		u.press(enter)
		u.reads(`deploy/production`, `place 1 of 2, behind`, `nora@desk-17`)
	}, 0},
	{"which lock is the most contended", func(u *user, _ string) {
		u.click("the locks", link("Locks"))
		u.click("the queue", button("Queue"))
		u.await("the longest queue is first", `() => document.querySelector("[role=row] a")?.textContent === "deploy/production"`)
	}, 0},
	{"who broke it, and why", func(u *user, _ string) {
		u.search("orders/42")
		u.press(enter)
		u.reads(`✕ broken by ada@ops-1: its host is gone`)
	}, 0},
	{"what happened to it", func(u *user, _ string) {
		u.search("night/report")
		u.press(enter)
		u.await("each lease has its times by the clock", `() => {
			const rows = [...document.querySelectorAll("table[aria-label^=Leases] tbody tr")].map((r) => r.innerText);
			return rows.length === 3 && rows.every((r) => (r.match(/\d\d:\d\d:\d\d/g) ?? []).length >= 2 && /released/.test(r) && /held/.test(r));
		}`)
	}, 0},
	{"is the store well", func(u *user, _ string) {
		u.reads(`Store\s+(✓ ok|✓ answers|⚠ warning)`, `\d ms`)
	}, 0},
	{"who leads", func(u *user, _ string) {
		u.click("the jobs", link("Jobs"))
		u.reads(`nightly/prices`, `(clock|second) on deploy@web-1`, `1 on standby`)
	}, 0},
	{"which schedules ran, which were missed", func(u *user, _ string) {
		u.click("the jobs", link("Jobs"))
		u.reads(`nightly/prices`, `\d\d:\d\d:\d\d`, `took`, `\d+ runs?`)
	}, 0},
	{"break one, safely", func(u *user, screen string) {
		name := "stuck/" + screen
		u.search(name)
		u.press(enter)
		u.click("break", button("Break…"))
		u.reads(`1 waiting, next: heir on`, `Held for`)
		u.focused("the reason", `(e) => e.name === "reason"`)
		u.typeText("its host is gone")
		u.click("the name", `() => document.querySelectorAll("dialog input")[1]`)
		u.typeText(name)
		u.await("the button has the name", `(name) => [...document.querySelectorAll("dialog button")].some((b) => b.innerText === "Break " + name)`, name)
		u.click("break it", `() => document.querySelector("dialog .danger")`)
		u.await("the next one has it", `() => document.querySelector(".holders")?.innerText.includes("heir on")`)
	}, 2},
	{"put a hold", func(u *user, screen string) {
		name := "freeze/" + screen
		u.search(name)
		u.click("hold it", `() => [...document.querySelectorAll("[role=option]")].find((e) => e.innerText.startsWith("Hold "))`)
		u.focused("how long", `(e) => e.name === "time"`)
		u.click("the reason", `() => document.querySelector("dialog input[name=reason]")`)
		u.typeText("no deploys")
		u.reads(`Nobody else can take it until (\d\d-\d\d )?\d\d:\d\d:\d\d, or until you release it`)
		u.click("hold", `() => document.querySelector("dialog .main")`)
		u.await("it is said", `() => document.querySelector(".said").innerText.includes("is held by you")`)
	}, 2},
}

// TestQuestions checks that a user finds the answer to each question with at most two clicks and
// one word, on each screen, by mouse or by touch. Clicks that confirm an action do not count.
func TestQuestions(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	newNight(t, s)
	for screen := range screens {
		t.Run(screen, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, s.url, screen)
			u.awaitText("live")
			for _, q := range questions {
				u.start()
				q.ask(u, screen)
				found := u.clicks - q.safe
				t.Logf("%s: %d clicks, %d words; %d to confirm", q.name, found, u.words, q.safe)
				if found > 2 || u.words > 1 {
					t.Errorf("%s: %d clicks and %d words", q.name, found, u.words)
				}
			}
		})
	}
}

// newNight fills the store with what the questions are about.
func newNight(t *testing.T, s *site) {
	t.Helper()
	c, o := s.worker("loader"), holdfast.AcquireOptions{TTL: time.Minute}
	acquire(t, c, "etl/load", o)
	nora := s.workerAs(holdfast.Holder{Host: "desk-17", User: "nora", Person: true})
	acquire(t, nora, "deploy/production", holdfast.AcquireOptions{TTL: 4 * time.Hour, KeepAlive: holdfast.KeepAliveOff, Reason: "release freeze"})
	waitFor(t, s.workerAs(holdfast.Holder{Host: "ci-7", PID: 7, User: "ci", Program: "deploy"}), "deploy/production", o)
	waitFor(t, s.workerAs(holdfast.Holder{Host: "ci-8", PID: 8, User: "ci", Program: "deploy"}), "deploy/production", o)
	l := acquire(t, c, "orders/42", o)
	if _, err := nora.Break(t.Context(), "orders/42", &holdfast.BreakOptions{Token: l.Token(), Author: "ada@ops-1", Reason: "its host is gone"}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		acquire(t, c, "night/report", holdfast.AcquireOptions{TTL: time.Minute, Reason: "report " + strconv.Itoa(i)}).Release(t.Context())
	}
	heir := s.worker("heir")
	for screen := range screens {
		acquire(t, c, "stuck/"+screen, o)
		waitFor(t, heir, "stuck/"+screen, o)
	}
	every(t, s.worker("clock"), "nightly/prices")
	every(t, s.worker("second"), "nightly/prices")
}

// every runs a scheduled job until the test ends.
func every(t *testing.T, c *holdfast.Client, name string) {
	t.Helper()
	ctx, done := t.Context(), make(chan error, 1)
	t.Cleanup(func() {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the schedule has ended: %v", err)
		}
	})
	go func() {
		done <- c.Every(ctx, name, holdfast.Periodic(time.Now().Truncate(time.Second), time.Second), nil, func(context.Context, holdfast.EveryRun) error { return nil })
	}()
}
