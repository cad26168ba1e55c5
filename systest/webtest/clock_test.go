//go:build web

package webtest

import "time"

// clock returns a function that converts an instant of the page's performance.now() to a time here.
// Both clocks are of one machine. clock compares them by the quickest of a few requests.
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

// watchPauses watches for times in which the page's thread does not run. It returns a function that
// returns the longest such pause since then, less the time of the thread's own long tasks.
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
