//go:build web

package webtest

import "time"

// clock returns what an instant of the page's performance.now() is here. Both are of one
// machine; the quickest of some questions says best how they stand to each other.
func (p *tab) clock() func(ms float64) time.Time {
	p.t.Helper()
	var at time.Time
	var theirs float64
	least := time.Hour
	for range 7 {
		before := time.Now()
		now := eval[float64](p, `() => performance.now()`)
		if took := time.Since(before); took < least {
			least, at, theirs = took, before.Add(took/2), now
		}
	}
	return func(ms float64) time.Time { return at.Add(millis(ms - theirs)) }
}

func millis(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// watchPauses returns a function that says for how long the page's own thread did not run
// at the worst, from now until it is called, although it had nothing to do: what is left of
// a pause when the tasks that took the time are taken off.
func (p *tab) watchPauses() func() time.Duration {
	p.t.Helper()
	eval[any](p, `() => {
		const tick = 5, pauses = [], tasks = [];
		const observer = new PerformanceObserver((list) => tasks.push(...list.getEntries()));
		observer.observe({type: "longtask"});
		let last = performance.now();
		const timer = setInterval(() => {
			const now = performance.now();
			if (now - last > 4 * tick) pauses.push([last, now]);
			last = now;
		}, tick);
		window.worstPause = () => {
			clearInterval(timer);
			tasks.push(...observer.takeRecords());
			observer.disconnect();
			const own = (from, to) => tasks.reduce((ms, t) => ms + Math.max(0, Math.min(to, t.startTime + t.duration) - Math.max(from, t.startTime)), 0);
			return Math.max(0, ...pauses.map(([from, to]) => to - from - own(from, to)));
		};
		return null;
	}`)
	return func() time.Duration { return millis(eval[float64](p, `() => window.worstPause()`)) }
}
