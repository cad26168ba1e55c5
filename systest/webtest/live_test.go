//go:build web

package webtest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// soon is how long after its grant a lock must appear on the page.
const soon = 300 * time.Millisecond

// cells is a function that returns the cells of a name in the table of locks: {name, holder, ...}.
const cells = `(name) => {
	const row = [...document.querySelectorAll("[role=row]")].find((r) => r.querySelector("a")?.textContent === name);
	return row && Object.fromEntries([...row.querySelectorAll("[role=gridcell]")].map((c) => [c.className.replace("cell-", ""), c.innerText.trim()]));
}`

// TestLockAppears checks that the page shows a lock within 300 ms of its grant, with its holder and
// reason. Pauses of the machine meanwhile do not count.
func TestLockAppears(t *testing.T) {
	s := newSite(t)
	c := s.worker("packer")
	p := open(t, s.url+"#/locks")
	p.awaitText("live")
	var took []time.Duration
	for _, name := range []string{"orders/1", "orders/2", "orders/3", "orders/4", "orders/5"} {
		clock := p.clock()
		pauses := p.watchPauses()
		pause := testsvc.WatchPauses()
		eval[any](p, `(name) => {
			const row = () => [...document.querySelectorAll("[role=row] a")].some((a) => a.textContent === name);
			window.appeared = new Promise((done) => {
				const observer = new MutationObserver(() => {
					if (!row()) return;
					observer.disconnect();
					done(performance.now());
				});
				observer.observe(document.body, {childList: true, subtree: true, characterData: true});
			});
			return null;
		}`, name)
		asked := time.Now() // before the grant
		acquire(t, c, name, holdfast.AcquireOptions{TTL: time.Minute, Reason: "pack them"})
		at := clock(eval[float64](p, `() => window.appeared`))
		late, allowed := at.Sub(asked), soon+pause()+pauses()
		if late > allowed {
			t.Errorf("%s appeared %s after it was asked for, want at most %s with the pauses of the machine", name, late, allowed)
		}
		took = append(took, late)
	}
	slices.Sort(took)
	t.Logf("a lock appears on the page %s after it was asked for (median of %d, the last %s)", took[len(took)/2], len(took), took[len(took)-1])
	row := eval[map[string]string](p, cells, "orders/1")
	for column, want := range map[string]string{"holder": "packer", "reason": "pack them", "queue": "–"} {
		if !strings.Contains(row[column], want) {
			t.Errorf("%s of orders/1 is %q, want %q", column, row[column], want)
		}
	}
}

// fill is a function that returns how full the bar of a lock is in the table, from 0 to 1.
const fill = `(name) => {
	const row = [...document.querySelectorAll("[role=row]")].find((r) => r.querySelector("a")?.textContent === name);
	const bar = row?.querySelector(".bar-fill");
	return bar ? new DOMMatrix(getComputedStyle(bar).transform).a : null;
}`

// TestBarDrainsAndJumps checks that a bar drains smoothly between events, as fast as the lease, and
// jumps when the lease is renewed.
func TestBarDrainsAndJumps(t *testing.T) {
	s := newSite(t)
	p := open(t, s.url+"#/locks")
	const ttl = 8 * time.Second
	l := acquire(t, s.worker("packer"), "orders/42", holdfast.AcquireOptions{TTL: ttl, KeepAlive: holdfast.KeepAliveOff})
	p.await("there is a bar", fill, "orders/42")
	drained := eval[struct{ At, Fill []float64 }](p, `async (name) => {
		const fill = `+fill+`;
		const at = [], full = [];
		for (let i = 0; i < 40; i++) {
			await new Promise(requestAnimationFrame);
			at.push(document.timeline.currentTime); // the instant of the picture, however late this script runs
			full.push(fill(name));
		}
		return {at, fill: full};
	}`, "orders/42")
	steps := 0
	var pace []float64 // of each step, 1 if as fast as the lease
	for i := 1; i < len(drained.Fill); i++ {
		if drained.Fill[i] > drained.Fill[i-1] {
			t.Errorf("the bar grew from %f to %f, and nobody has renewed the lease", drained.Fill[i-1], drained.Fill[i])
		}
		if drained.Fill[i] < drained.Fill[i-1] {
			steps++
			pace = append(pace, (drained.Fill[i-1]-drained.Fill[i])*ttl.Seconds()*1000/(drained.At[i]-drained.At[i-1]))
		}
	}
	if steps < len(drained.Fill)/2 {
		t.Errorf("the bar changed in %d of %d pictures: it does not drain smoothly", steps, len(drained.Fill))
	}
	slices.Sort(pace) // a late reply may correct the bar in one step
	if pace := pace[len(pace)/2]; pace < 0.9 || pace > 1.1 {
		t.Errorf("the bar drains %.3f times as fast as the lease", pace)
	}
	p.await("much of the lease is over", `(name) => (`+fill+`)(name) < 0.6`, "orders/42")
	if err := l.Extend(t.Context(), ttl); err != nil {
		t.Fatal(err)
	}
	p.await("the bar has jumped", `(name) => (`+fill+`)(name) > 0.75`, "orders/42")
	eval[any](p, `() => { window.bars = [...document.querySelectorAll(".bar-fill")].flatMap((bar) => bar.getAnimations()); return null; }`)
	p.show("events")
	p.await("no animation goes on without its bar", `() => bars.length > 0 && bars.every((motion) => motion.playState === "idle")`)
}

// TestWaiterQueuesAndHolds checks that the page shows a waiter in the queue and, after the lock is
// released, as its holder.
func TestWaiterQueuesAndHolds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := open(t, s.url+"#/locks")
	q := p.beside(s.url + "#/lock?name=orders%2F42")
	o := holdfast.AcquireOptions{TTL: time.Minute}
	l := acquire(t, s.worker("packer"), "orders/42", o)
	waitFor(t, s.worker("shipper"), "orders/42", o)
	p.await("one waits", `(name) => ((`+cells+`)(name)?.queue ?? "").startsWith("1 ")`, "orders/42")
	q.await("the shipper is in the queue", `() => document.querySelector(".queue")?.innerText.includes("shipper")`)
	q.await("the packer has it", `() => document.querySelector(".holders")?.innerText.includes("packer")`)
	l.Release(t.Context())
	p.await("the shipper has it", `(name) => { const c = (`+cells+`)(name); return c?.holder.includes("shipper") && c.queue === "–"; }`, "orders/42")
	q.await("the shipper has it", `() => document.querySelector(".holders")?.innerText.includes("shipper")`)
	q.await("nobody waits", `() => !document.querySelector(".queue")`)
}

// reds is a function that returns the texts that are shown in red.
const reds = `() => {
	const red = (e) => { const m = getComputedStyle(e).color.match(/[\d.]+/g).map(Number); return m[0] > 1.6 * m[1] && m[0] > 1.6 * m[2]; };
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
	for (let n = walker.nextNode(); n; n = walker.nextNode())
		if (n.data.trim() && n.parentElement.checkVisibility() && red(n.parentElement)) found.push(n.parentElement.closest("li, tr, p, [role=row], section")?.innerText ?? n.data);
	return found.join("\n");
}`

// TestLossesAndFreezes checks that the page shows a lost lease in red and in words, and announces
// the loss to screen readers. For a broken lease it shows who broke it, and why. It marks a lock
// that a person holds.
func TestLossesAndFreezes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.worker("packer")
	p := open(t, s.url+"#/lock?name=orders%2F1")
	p.theme("light")
	acquire(t, c, "orders/1", holdfast.AcquireOptions{TTL: time.Second, KeepAlive: holdfast.KeepAliveOff})
	p.await("the packer has it", `() => document.querySelector(".holders")?.innerText.includes("packer")`)
	p.await("the loss is red", `() => /expired|lost/.test((`+reds+`)())`)
	p.await("the loss is told", `() => /orders\/1.*(expired|was lost)/.test(document.querySelector("[role=log][aria-live]")?.textContent)`)

	l := acquire(t, c, "orders/2", holdfast.AcquireOptions{TTL: time.Minute})
	p.view("lock?name=orders%2F2")
	p.await("the packer has it", `() => document.querySelector(".holders")?.innerText.includes("packer")`)
	b := s.workerAs(holdfast.Holder{Host: "ops-1", User: "ada", Person: true})
	if _, err := b.Break(t.Context(), "orders/2", &holdfast.BreakOptions{Token: l.Token(), Author: "ada@ops-1", Reason: "its host is gone"}); err != nil {
		t.Fatal(err)
	}
	p.await("the breaker is named in red", `() => /broken[^]*ada@ops-1[^]*its host is gone/.test((`+reds+`)())`)
	p.show("overview")
	p.await("the losses are on the overview, in red", `() => /\b2\b/.test((`+reds+`)())`)

	acquire(t, b, "orders/3", holdfast.AcquireOptions{TTL: time.Minute, KeepAlive: holdfast.KeepAliveOff, Reason: "no shipping today"})
	p.show("locks?state=frozen")
	p.await("the freeze is shown", `() => { const c = (`+cells+`)("orders/3"); return c?.holder.includes("ada") && c.reason === "no shipping today"; }`)
	p.show("lock?name=orders%2F3")
	p.awaitText("frozen by a person")
}
