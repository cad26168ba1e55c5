//go:build web

package webtest

import (
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const (
	enter  = kb.Enter
	escape = kb.Escape
	down   = kb.ArrowDown
)

// press presses a key, in the element that has the focus.
func (p *tab) press(key string) {
	p.t.Helper()
	p.do("press a key", chromedp.KeyEvent(key))
}

// typeText types a text, one key after the other.
func (p *tab) typeText(text string) {
	p.t.Helper()
	p.do("type "+text, chromedp.KeyEvent(text))
}

// shortcut presses a key that the page may use as a shortcut. If it does, the browser inserts no
// character.
func (p *tab) shortcut(key string) {
	p.t.Helper()
	call(p, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: key, Text: key})
	call(p, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyUp, Key: key})
}

// tabTo presses Tab until an element has the focus, and checks that the focus is visible.
func (p *tab) tabTo(what, is string) {
	p.t.Helper()
	p.await("there is "+what, `() => [...document.querySelectorAll("a, button, input, select, textarea, [tabindex]")].some((e) => e.checkVisibility() && (`+is+`)(e))`)
	for range 200 {
		p.press(kb.Tab)
		if eval[bool](p, `() => Boolean((`+is+`)(document.activeElement))`) {
			if !eval[bool](p, seenFocus) {
				p.t.Errorf("nobody sees that the keyboard is on %s", what)
			}
			return
		}
	}
	p.t.Fatalf("no Tab leads to %s; the page shows:\n%s", what, p.text())
}

// focused waits until an element has the focus.
func (p *tab) focused(what, is string) {
	p.t.Helper()
	p.await("the keyboard is on "+what, `() => (`+is+`)(document.activeElement)`)
}

// seenFocus is a function that reports whether the focus is visible.
const seenFocus = `() => {
	const s = getComputedStyle(document.activeElement);
	return s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 1 || s.boxShadow !== "none";
}`
