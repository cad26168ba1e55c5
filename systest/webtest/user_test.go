//go:build web

package webtest

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
)

// A user has a screen and a mouse or a finger, and counts its clicks and words.
type user struct {
	*tab
	touch         bool
	clicks, words int
}

// screens are common screens.
var screens = map[string]struct {
	width, height int64
	touch         bool
}{
	"desk":   {1440, 900, false},
	"laptop": {1024, 768, false},
	"phone":  {390, 844, true},
}

func newUser(t testing.TB, url, screen string) *user {
	t.Helper()
	s := screens[screen]
	u := &user{tab: newPage(t), touch: s.touch}
	call(u.tab, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: s.width, Height: s.height, DeviceScaleFactor: 1, Mobile: s.touch})
	call(u.tab, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: s.touch, MaxTouchPoints: 1})
	u.first(url)
	return u
}

// start goes to the overview, and sets the counts to 0.
func (u *user) start() {
	u.t.Helper()
	u.show("overview")
	u.await("the overview is there", `() => document.querySelector(".attention b")`)
	u.clicks, u.words = 0, 0
}

// link and button return functions that find a link or a button by its text.
func link(text string) string {
	return `() => [...document.querySelectorAll("a")].find((e) => e.checkVisibility() && e.innerText.trim() === ` + quoted(text) + `)`
}

func button(text string) string {
	return `() => [...document.querySelectorAll("button")].find((e) => e.checkVisibility() && e.innerText.trim().startsWith(` + quoted(text) + `))`
}

func quoted(text string) string { return `"` + strings.ReplaceAll(text, `"`, `\"`) + `"` }

// click clicks or taps the element that a function finds, where it is visible.
func (u *user) click(what, find string) {
	u.t.Helper()
	var at struct{ X, Y float64 }
	for end := time.Now().Add(patience); ; time.Sleep(15 * time.Millisecond) {
		found := eval[struct {
			X, Y float64
			Hit  bool
		}](u.tab, `async () => {
			const e = (`+find+`)();
			if (!e) return {x: 0, y: 0, hit: false};
			const {top, bottom} = e.getBoundingClientRect();
			if (top < 0 || bottom > innerHeight - 60) e.scrollIntoView({block: "center"});
			await new Promise(requestAnimationFrame);
			const r = e.getClientRects()[0], x = r.left + r.width / 2, y = r.top + r.height / 2;
			return {x, y, hit: e.contains(document.elementFromPoint(x, y))};
		}`)
		if at = struct{ X, Y float64 }{found.X, found.Y}; found.Hit {
			break
		}
		if time.Now().After(end) {
			u.t.Fatalf("nobody can click on %s; the page shows:\n%s", what, u.text())
		}
	}
	u.clicks++
	if u.touch {
		call(u.tab, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: input.DispatchTouchEventTypeTouchStart, TouchPoints: []*input.TouchPoint{{X: at.X, Y: at.Y}}})
		call(u.tab, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: input.DispatchTouchEventTypeTouchEnd, TouchPoints: []*input.TouchPoint{}})
		return
	}
	for _, kind := range []input.DispatchMouseEventType{input.DispatchMouseEventTypeMousePressed, "mouseReleased"} {
		call(u.tab, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: at.X, Y: at.Y, Button: input.MouseButtonLeft, ClickCount: 1})
	}
}

// search opens the search with its key, or on a touch screen with its button, and types a word.
func (u *user) search(word string) {
	u.t.Helper()
	if u.touch {
		u.click("the search", button("Search"))
	} else {
		u.shortcut("/")
	}
	u.focused("the search", `(e) => e.name === "search"`)
	u.typeText(word)
	u.words++
	u.await("something is found", `() => document.querySelector("[role=option]")`)
}

// reads waits until the page shows texts that match the patterns, in the window or by scrolling.
func (u *user) reads(patterns ...string) {
	u.t.Helper()
	for _, pattern := range patterns {
		u.await("one reads "+pattern, `(pattern) => new RegExp(pattern).test(document.body.innerText)`, pattern)
	}
}
