//go:build web

package webtest

import (
	"cmp"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// While its server is away the page says that what it shows is stale, and since when; once
// the server is back the page is current again by itself, within 5 s.
func TestRestart(t *testing.T) {
	s := newSite(t)
	c := s.worker("packer")
	before := acquire(t, c, "orders/before", holdfast.AcquireOptions{TTL: time.Minute})
	p := open(t, s.url+"#/locks")
	p.expect(`^log: network: .* net::ERR_`) // the browser's own lines about the server that is away
	p.awaitText("orders/before")
	s.serve.Kill()
	p.await("the page says that it is stale", `() => /stale/i.test(document.querySelector(".notices")?.innerText) && document.querySelector("[role=status]")`)
	p.awaitText("ago") // since when
	p.awaitText("orders/before")
	before.Release(t.Context())
	acquire(t, c, "orders/during", holdfast.AcquireOptions{TTL: time.Minute})

	pauses, pause := p.watchPauses(), testsvc.WatchPauses()
	s.serve.Restart()
	back := time.Now()
	p.await("the page is current", `() => {
		const text = document.querySelector("main").innerText;
		return text.includes("orders/during") && !text.includes("orders/before") && !/stale/i.test(document.querySelector(".notices")?.innerText);
	}`)
	took, allowed := time.Since(back), 5*time.Second+pause()+pauses()
	t.Logf("the page is current %s after its server is back", took)
	if took > allowed {
		t.Errorf("it took %s, want at most %s with the pauses of the machine", took, allowed)
	}
	acquire(t, c, "orders/after", holdfast.AcquireOptions{TTL: time.Minute})
	p.awaitText("orders/after") // and it hears of events again
}

// The first view can be used within 300 ms of the time at which somebody goes to the
// address: its locks are there, and so is what it is made of.
func TestFirstView(t *testing.T) {
	s := newSite(t)
	acquire(t, s.worker("packer"), "orders/42", holdfast.AcquireOptions{TTL: time.Minute})
	bare := serveHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<!doctype html><title>bare</title><link rel="icon" href="data:,"><p role="row"><a>orders/42</a></p>`)
	})) + "/"
	pause := testsvc.WatchPauses()
	var best, least time.Duration
	for range 5 { // each in a browser that has never seen the page
		best, least = min(cmp.Or(best, time.Hour), firstView(t, s.url+"#/locks")), min(cmp.Or(least, time.Hour), firstView(t, bare))
	}
	allowed := soon + least + pause()
	t.Logf("the first view can be used %s after one goes to its address; a page without scripts is there after %s (the best of 5)", best, least)
	if best > allowed {
		t.Errorf("it took %s, want at most %s, with the pauses of the machine and what it needs for a page without scripts", best, allowed)
	}
}

// firstView returns how long it takes until a lock is on a page.
func firstView(t *testing.T, url string) time.Duration {
	t.Helper()
	p := newPage(t)
	p.before(`addEventListener("DOMContentLoaded", () => {
		const there = () => { if (!window.usable && document.querySelector("[role=row] a")?.textContent === "orders/42") window.usable = performance.now(); };
		new MutationObserver(there).observe(document.documentElement, {childList: true, subtree: true, characterData: true});
		there();
	})`)
	p.first(url)
	p.await("the lock is there", `() => window.usable`)
	return millis(eval[float64](p, `() => window.usable`))
}
