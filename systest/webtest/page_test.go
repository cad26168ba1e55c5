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

// patience is how long a test waits, at most, for a busy machine.
const patience = 20 * time.Second

// A tab is one tab of the browser. It has its own cookies and storage, unless beside opened it. Its
// methods fail the test, and must be called from the test's goroutine.
type tab struct {
	t      testing.TB
	ctx    context.Context
	cancel context.CancelCauseFunc
	origin string // the only origin to which it may send requests

	mu       sync.Mutex
	trouble  []string
	expected []*regexp.Regexp
}

// violationBinding is a function in each page, by which the page reports violations.
const violationBinding = "holdfastViolation"

// open opens a page in a tab of its own, and returns when it is loaded.
func open(t testing.TB, url string) *tab {
	t.Helper()
	p := newPage(t)
	p.first(url)
	return p
}

// newPage returns an empty tab with its own cookies and storage.
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

// besideWith is beside for a page whose lines on the console are expected.
func (p *tab) besideWith(url string, expected []*regexp.Regexp) *tab {
	p.t.Helper()
	q := newTab(p.t, p.ctx)
	q.expected = slices.Clone(expected)
	q.first(url)
	return q
}

// before runs a script in each document, before the scripts of the page.
func (p *tab) before(script string) {
	p.t.Helper()
	call(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
}

// first opens the first address, whose origin is the only allowed one. From then on, any trouble
// in the page fails the test.
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

// visit opens an address.
func (p *tab) visit(url string) {
	p.t.Helper()
	p.do("visit "+url, chromedp.Navigate(url))
}

// view shows a view of the open page, such as "locks?state=held".
func (p *tab) view(address string) {
	p.t.Helper()
	eval[any](p, `(a) => { location.hash = "#/" + a; return null; }`, address)
}

// do runs actions in the tab.
func (p *tab) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	p.check(what, chromedp.Do(ctx, actions...))
}

// check fails the test at once if there was trouble in the page, or if err is not nil.
func (p *tab) check(what string, err error) {
	p.t.Helper()
	if cause := context.Cause(p.ctx); cause != nil {
		p.t.FailNow() // the clean-up reports why
	}
	if err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

// eval calls a JavaScript function in the page, and returns its result, or that of its promise. The
// arguments are encoded as JSON.
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

// await waits until a JavaScript function returns a true value. The page may be loaded again
// meanwhile.
func (p *tab) await(what, function string, args ...any) {
	p.t.Helper()
	p.awaitIn(patience, what, function, args...)
}

// awaitIn is await with another time limit.
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

// settle waits until the page has drawn its state and handles keys.
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

// awaitNoText waits until the page no longer shows a text.
func (p *tab) awaitNoText(text string) {
	p.t.Helper()
	p.await(fmt.Sprintf("the page does not show %q", text), `(text) => !document.body.innerText.includes(text)`, text)
}

// expect allows lines on the console that match pattern, because the test causes them. The browser
// itself writes a line for each reply that is an error.
func (p *tab) expect(pattern string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = append(p.expected, regexp.MustCompile(pattern))
}

// blame records trouble and ends the test, unless the test expects it.
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

// forgive returns the recorded trouble, and deletes it.
func (p *tab) forgive() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	trouble := p.trouble
	p.trouble = nil
	return trouble
}

// ok reports whether a text matches a pattern.
func ok(t testing.TB, pattern, text string) bool {
	t.Helper()
	found, err := regexp.MatchString(pattern, text)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
