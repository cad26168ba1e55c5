//go:build web

package webtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience bounds what a busy machine may need. What has a bound of its own is measured.
const patience = 20 * time.Second

// A tab is one tab of the browser, with cookies and storage of its own unless it was
// opened beside another. Its methods fail the test, and must be called from the test's
// goroutine.
type tab struct {
	t      testing.TB
	ctx    context.Context
	cancel context.CancelCauseFunc
	origin string // where it may send requests

	mu       sync.Mutex
	trouble  []string
	expected []*regexp.Regexp
}

// violationBinding is a function in each page, which tells us of violations.
const violationBinding = "holdfastViolation"

// open opens a page in a tab of its own, and returns when it is loaded.
func open(t testing.TB, url string) *tab {
	t.Helper()
	p := newPage(t)
	p.first(url)
	return p
}

// newPage returns a tab of its own, in which nothing is open.
func newPage(t testing.TB) *tab {
	t.Helper()
	return newTab(t, shared.browser, chromedp.WithNewBrowserContext())
}

func newTab(t testing.TB, parent context.Context, options ...chromedp.ContextOption) *tab {
	t.Helper()
	whole, closeTab := chromedp.NewContext(parent, options...)
	t.Cleanup(closeTab)
	if err := chromedp.Do(whole); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	p := &tab{t: t}
	p.ctx, p.cancel = context.WithCancelCause(whole)
	t.Cleanup(func() { p.cancel(nil) })
	if err := p.watch(whole); err != nil {
		t.Fatalf("watch a tab: %v", err)
	}
	call(p, runtime.AddBinding, runtime.AddBindingParams{Name: violationBinding})
	p.before(`addEventListener("securitypolicyviolation", (e) => ` + violationBinding + `(
		e.violatedDirective + " " + e.blockedURI + " " + e.sourceFile + ":" + e.lineNumber + " " + e.sample))`)
	call(p, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	return p
}

// beside opens a page in another tab with the same cookies.
func (p *tab) beside(url string) *tab {
	p.t.Helper()
	return p.besideWith(url, nil)
}

// besideWith does so where lines on the console are expected.
func (p *tab) besideWith(url string, expected []*regexp.Regexp) *tab {
	p.t.Helper()
	q := newTab(p.t, p.ctx)
	q.expected = slices.Clone(expected)
	q.first(url)
	return q
}

// before has a script run in each document before the page does.
func (p *tab) before(script string) {
	p.t.Helper()
	call(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
}

// first goes to the first address, whose origin is the only one from then on. Whatever
// goes wrong in the page fails the test.
func (p *tab) first(url string) {
	p.t.Helper()
	p.t.Cleanup(func() {
		for _, what := range p.forgive() {
			p.t.Errorf("the page: %s", what)
		}
	})
	p.origin = strings.Join(strings.SplitN(url, "/", 4)[:3], "/")
	p.visit(url)
}

// visit goes to an address.
func (p *tab) visit(url string) {
	p.t.Helper()
	p.do("visit "+url, chromedp.Navigate(url))
}

// view shows a view of the page that is open: "locks?state=held".
func (p *tab) view(address string) {
	p.t.Helper()
	eval[any](p, `(a) => { location.hash = "#/" + a; return null; }`, address)
}

// do carries out actions.
func (p *tab) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	p.check(what, chromedp.Do(ctx, actions...))
}

// check fails the test at once if something went wrong, in the page or on the way to it.
func (p *tab) check(what string, err error) {
	p.t.Helper()
	if cause := context.Cause(p.ctx); cause != nil {
		p.t.FailNow() // the clean-up says why
	}
	if err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

// eval calls a function of JavaScript in the page, and returns what it, or its promise,
// returns. The arguments are values of JSON.
func eval[T any](p *tab, function string, args ...any) T {
	p.t.Helper()
	v, err := tryEval[T](p, function, args...)
	p.check("eval "+function, err)
	return v
}

func tryEval[T any](p *tab, function string, args ...any) (T, error) {
	var texts []string
	for _, arg := range args {
		text, err := json.Marshal(arg)
		if err != nil {
			p.t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	ctx, cancel := context.WithTimeout(p.ctx, 2*patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T]("("+function+")("+strings.Join(texts, ",")+")", chromedp.EvalAwaitPromise))
}

// await waits until a function of JavaScript returns something true. The page may be
// loaded anew meanwhile.
func (p *tab) await(what, function string, args ...any) {
	p.t.Helper()
	p.awaitIn(patience, what, function, args...)
}

// awaitIn is await with a time of its own.
func (p *tab) awaitIn(d time.Duration, what, function string, args ...any) {
	p.t.Helper()
	var err error
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(15 * time.Millisecond) {
		var ok bool
		ok, err = tryEval[bool](p, "(...args) => Boolean(("+function+")(...args))", args...)
		if ok {
			return
		}
		if p.ctx.Err() != nil {
			break
		}
	}
	p.check("wait until "+what, nil)
	p.t.Fatalf("not within %s: %s (%v); the page shows:\n%s", d, what, err, p.text())
}

// settle returns when the page has drawn what it has, and listens to keys.
func (p *tab) settle() {
	p.t.Helper()
	eval[any](p, `async () => {
		for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
		await new Promise((done) => setTimeout(done));
		return null;
	}`)
}

// text returns what the page shows.
func (p *tab) text() string {
	p.t.Helper()
	return eval[string](p, `() => document.body.innerText`)
}

// awaitText waits until the page shows a text.
func (p *tab) awaitText(text string) {
	p.t.Helper()
	p.await(fmt.Sprintf("the page shows %q", text), `(text) => document.body.innerText.includes(text)`, text)
}

// awaitNoText waits until it does not.
func (p *tab) awaitNoText(text string) {
	p.t.Helper()
	p.await(fmt.Sprintf("the page does not show %q", text), `(text) => !document.body.innerText.includes(text)`, text)
}

// expect says that the console will have lines like this, because the test brings them
// about: the browser itself writes a line for each answer that is an error.
func (p *tab) expect(pattern string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = append(p.expected, regexp.MustCompile(pattern))
}

// blame ends the test, unless it has said that this would happen.
func (p *tab) blame(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, expected := range p.expected {
		if expected.MatchString(what) {
			return
		}
	}
	p.trouble = append(p.trouble, what)
	p.cancel(errors.New(what))
}

// forgive returns what the page was blamed for, and forgets it.
func (p *tab) forgive() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	trouble := p.trouble
	p.trouble = nil
	return trouble
}

// ok reports whether a text is like this.
func ok(t testing.TB, pattern, text string) bool {
	t.Helper()
	found, err := regexp.MatchString(pattern, text)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
