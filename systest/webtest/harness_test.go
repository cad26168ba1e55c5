//go:build web

package webtest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestPagesAreWatched checks that a page that does one wrong thing fails its test.
func TestPagesAreWatched(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, want string }{
		"violation of the policy": {`document.body.append(Object.assign(document.createElement("div"), {innerHTML: "<img src=x onerror=alert(1)>"}))`, "Content-Security-Policy: script-src-attr inline"},
		"inline style":            {`document.body.setAttribute("style", "color: red")`, "Content-Security-Policy: style-src"},
		"error on the console":    {`console.error("lost", 42)`, "console.error: lost 42"},
		"warning":                 {`console.warn("old")`, "console.warning: old"},
		"exception":               {`setTimeout(() => { throw new Error("uncaught") })`, "uncaught"},
		"rejection":               {`Promise.reject(new Error("nobody asks"))`, "nobody asks"},
		"another host":            {`fetch("http://example.org/").catch(() => {})`, "a request to another host: http://example.org/"},
		"another port":            {`fetch("http://127.0.0.1:9/").catch(() => {})`, "a request to another host: http://127.0.0.1:9/"},
		"missing file":            {`fetch("nothing-here")`, "404"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := serveHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(c.want, "Content-Security-Policy") {
					w.Header().Set("Content-Security-Policy", "default-src 'self'")
				}
				switch r.URL.Path {
				case "/":
					w.Header().Set("Content-Type", "text/html")
					fmt.Fprint(w, `<!doctype html><title>wrong</title><body><script type="module" src="wrong.js"></script>`)
				case "/wrong.js":
					w.Header().Set("Content-Type", "text/javascript")
					fmt.Fprint(w, c.script)
				case "/favicon.ico", "/x":
				default:
					http.NotFound(w, r)
				}
			}))
			p := newPage(t)
			p.origin = url
			_ = chromedp.Do(p.ctx, chromedp.Navigate(url+"/"))
			// Several guards may report the same fault.
			var got string
			for end := time.Now().Add(patience); !strings.Contains(got, c.want); time.Sleep(time.Millisecond) {
				if got += strings.Join(p.forgive(), "\n"); time.Now().After(end) {
					t.Fatalf("the page is blamed for %q, want %q", got, c.want)
				}
			}
			if p.ctx.Err() == nil {
				t.Error("the test of this page would go on")
			}
		})
	}
}

// TestPageIsShown checks that a real server shows every view.
func TestPageIsShown(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := open(t, s.url)
	p.await("there is a heading", `() => document.querySelector("h1")?.innerText`)
	for _, view := range []string{"locks", "holders", "blocked", "jobs", "once", "onetime", "events", "lock?name=orders%2F42", "overview"} {
		p.view(view)
		p.await("there is a heading in "+view, `() => document.querySelector("main h1")?.innerText`)
	}
}
