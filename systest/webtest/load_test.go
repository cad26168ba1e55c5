//go:build web

package webtest

import (
	"context"
	"flag"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/performance"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// The promise is about ten minutes: make test-web LOAD=10m.
var long = flag.Duration("load", 12*time.Second, "for how long the page is under load")

const (
	manyLocks  = 10_000
	manyEvents = 200 // a second
)

// TestUnderLoad checks a page with 10,000 locks. While nothing happens, it loads less than 100 kB a
// minute. With 200 events a second its scripts take less than half of a core, and later no more
// than at first. No task takes longer than 200 ms, and the filter answers within 100 ms. After the
// first third of the time, the heap changes by at most a fifth.
func TestUnderLoad(t *testing.T) {
	s := newSite(t)
	c := s.worker("nightly")
	fillStore(t, c, manyLocks)
	p := open(t, s.url+"#/locks")
	p.await("all locks are there", `(n) => document.querySelector("main").innerText.replaceAll(/[,. \u202f\u00a0]/g, "").includes(n + "of" + n)`, fmt.Sprint(manyLocks))
	call(p, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks})
	checkIdle(t, p)
	stop := churn(t, c)
	defer stop()
	p.sleepIn(*long / 3)
	pauses, pause := p.watchPauses(), testsvc.WatchPauses()
	p.watchTasks()
	before, heapBefore := p.metrics(), p.heap()
	p.sleepIn(*long / 3)
	between := p.metrics()
	p.sleepIn(*long / 3)
	after := p.metrics()
	longest := p.longestTask()
	machine := pauses() + pause()
	heapAfter := p.heap()
	answers := p.filterTimes()
	events := stop()

	passed := after["Timestamp"] - before["Timestamp"]
	script := (after["ScriptDuration"] - before["ScriptDuration"]) / passed
	task := (after["TaskDuration"] - before["TaskDuration"]) / passed
	t.Logf("%d locks, %.0f events a second: scripts %.1f %% of a core, all of the page's thread %.1f %%; longest task %s (the machine's pauses: %s); heap %.1f MiB, and %.1f later; the filter answers in %s",
		manyLocks, events, 100*script, 100*task, longest, machine, heapBefore/(1<<20), heapAfter/(1<<20), answers)
	if events < 0.9*manyEvents {
		t.Errorf("only %.0f events a second were made", events)
	}
	if script >= 0.5 {
		t.Errorf("scripts take %.1f %% of a core, want less than 50", 100*script)
	}
	first := (between["ScriptDuration"] - before["ScriptDuration"]) / (between["Timestamp"] - before["Timestamp"])
	last := (after["ScriptDuration"] - between["ScriptDuration"]) / (after["Timestamp"] - between["Timestamp"])
	if last > 1.5*first+0.05 {
		t.Errorf("scripts took %.1f %% of a core at first, and %.1f %% later", 100*first, 100*last)
	}
	if longest > 200*time.Millisecond+machine {
		t.Errorf("a task took %s, want at most 200 ms and the machine's pauses, %s", longest, machine)
	}
	if math.Abs(heapAfter-heapBefore) > heapBefore/5 {
		t.Errorf("the heap went from %.1f MiB to %.1f", heapBefore/(1<<20), heapAfter/(1<<20))
	}
	for _, took := range answers {
		if took > 100*time.Millisecond+machine {
			t.Errorf("the filter answered in %s, want at most 100 ms and the machine's pauses, %s", took, machine)
		}
	}
}

// checkIdle checks how much a page loads while nothing happens.
func checkIdle(t *testing.T, p *tab) {
	t.Helper()
	eval[any](p, `() => { performance.setResourceTimingBufferSize(100_000); performance.clearResourceTimings(); return null; }`)
	length := min(*long, time.Minute)
	p.sleepIn(length)
	idle := eval[float64](p, `() => performance.getEntriesByType("resource").reduce((n, e) => n + e.transferSize, 0)`) * float64(time.Minute) / float64(length)
	t.Logf("an idle page of %d locks costs %.0f kB a minute", manyLocks, idle/1000)
	if idle >= 100_000 {
		t.Errorf("an idle page costs %.0f kB a minute, want less than 100", idle/1000)
	}
}

// fillStore acquires n locks, up to MaxNames at a time.
func fillStore(t *testing.T, c *holdfast.Client, n int) {
	t.Helper()
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("team-%02d/orders/%05d", i%50, i))
	}
	for len(names) > 0 {
		n := min(holdfast.MaxNames, len(names))
		if _, err := c.AcquireAll(t.Context(), names[:n], &holdfast.AcquireOptions{TTL: time.Hour, KeepAlive: holdfast.KeepAliveOff, Reason: "nightly"}); err != nil {
			t.Fatal(err)
		}
		names = names[n:]
	}
}

// churn acquires and releases locks, for manyEvents events a second, until stop is called. stop
// returns how many events a second there were.
func churn(t *testing.T, c *holdfast.Client) (stop func() float64) {
	ctx, cancel := context.WithCancel(t.Context())
	rate := make(chan float64, 1)
	go func() {
		const batch = 20 // pairs of events
		began, n := time.Now(), 0
		tick := time.NewTicker(time.Second * 2 * batch / manyEvents)
		defer tick.Stop()
		for ctx.Err() == nil {
			for i := range batch {
				name := fmt.Sprintf("team-%02d/busy/%03d", i, n%500)
				l, err := c.Acquire(ctx, name, &holdfast.AcquireOptions{TTL: time.Minute, KeepAlive: holdfast.KeepAliveOff, Reason: "busy"})
				if err != nil {
					break
				}
				l.Release(ctx)
				n += 2
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
		rate <- float64(n) / time.Since(began).Seconds()
	}()
	got := -1.0
	return func() float64 {
		cancel()
		if got < 0 {
			got = <-rate
		}
		return got
	}
}

// sleepIn waits, while the page runs.
func (p *tab) sleepIn(d time.Duration) {
	p.t.Helper()
	select {
	case <-time.After(d):
	case <-p.ctx.Done():
	}
	p.check("let the page be", nil)
}

// metrics returns the browser's measurements of the page's main thread; times are in seconds.
func (p *tab) metrics() map[string]float64 {
	p.t.Helper()
	all := map[string]float64{}
	for _, m := range call(p, performance.GetMetrics, cdp.Empty{}).Metrics {
		all[m.Name] = m.Value
	}
	return all
}

// heap returns the size of the page's heap in bytes, after garbage collection.
func (p *tab) heap() float64 {
	p.t.Helper()
	call(p, heapprofiler.CollectGarbage, cdp.Empty{})
	return p.metrics()["JSHeapUsedSize"]
}

// watchTasks begins to record the page's long tasks, and longestTask returns the longest.
func (p *tab) watchTasks() {
	p.t.Helper()
	eval[any](p, `() => {
		window.longest = 0;
		const note = (list) => { for (const e of list) window.longest = Math.max(window.longest, e.duration); };
		window.tasks = new PerformanceObserver((list) => note(list.getEntries()));
		window.tasks.observe({type: "longtask"});
		window.noteTasks = () => { note(window.tasks.takeRecords()); window.tasks.disconnect(); return window.longest; };
		return null;
	}`)
}

func (p *tab) longestTask() time.Duration {
	p.t.Helper()
	return millis(eval[float64](p, `() => window.noteTasks()`))
}

// filterTimes types into the filter, and measures the time until the page shows the matching rows
// and no others.
func (p *tab) filterTimes() []time.Duration {
	p.t.Helper()
	var all []time.Duration
	for _, prefix := range []string{"team-07/", "team-07/orders/00", "team-31/orders/0", ""} {
		all = append(all, millis(eval[float64](p, `async (prefix) => {
			const field = document.querySelector("input[name=prefix]");
			const rows = () => [...document.querySelectorAll("[role=row] a")];
			const fits = () => rows().length > 0 && rows().every((a) => a.textContent.startsWith(prefix)) && (prefix || !rows()[0].textContent.startsWith("team-31"));
			const began = performance.now();
			field.value = prefix;
			field.dispatchEvent(new Event("input", {bubbles: true}));
			while (!fits()) {
				if (performance.now() - began > 5000) throw new Error("the filter " + prefix + " shows nothing that fits");
				await new Promise((done) => { const c = new MessageChannel(); c.port1.onmessage = done; c.port2.postMessage(null); });
			}
			return performance.now() - began;
		}`, prefix)))
	}
	return all
}
