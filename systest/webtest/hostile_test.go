//go:build web

package webtest

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
)

// hostiles are texts that users may choose as names of locks, hosts, or reasons.
var hostiles = map[string]string{
	"markup":     `<img src=x onerror=alert(1)>`,
	"script":     `</script><script>alert(1)</script>`,
	"quotes":     `"'` + "`" + ` onmouseover="alert(1)" style='color:red' ${alert(1)} {{7*7}} \u0000 %00 %2e%2e/`,
	"address":    `javascript:alert(1)//?&=#/../ %41+b`,
	"rightward":  "שלום/عالم/42 hash", // letters that are read from right to left
	"emoji":      "🔒👩‍👩‍👧‍👦/🏳️‍🌈 e\u0301\u0301\u0301 ﷽",
	"long":       strings.Repeat("W", 512),
	"long lines": strings.Repeat("漢字 ", 73) + "x",
	"unseen":     "orders\u200b/4\u2060 2\ufeff\u00ad",
	"prototype":  "__proto__",
	"number":     "0x1e3",
}

// TestHostileTexts checks that every view shows hostile names and reasons as text: the page has no
// scripts or elements from them, and it does not become wider, even on a phone.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	for name, text := range hostiles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			p := open(t, s.url)
			p.awaitText("live") // from now on the page receives events
			newCrowd(t, s, text)
			for _, view := range views(text) {
				p.show(view)
				if view != "overview" && view != "jobs" && view != "onetime" && view != "blocked" { // these need not show the name
					p.await(view+" shows the text", `(text) => document.querySelector("main").textContent.includes(text)`, shown(text))
				}
				for _, what := range eval[[]string](p, foreign) {
					t.Errorf("%s: %s", view, what)
				}
				for _, width := range []int64{1280, 360} {
					call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 900, DeviceScaleFactor: 1})
					if wide := eval[int64](p, `() => document.documentElement.scrollWidth`); wide > width {
						t.Errorf("%s: the page is %d wide where there are %d", view, wide, width)
					}
				}
			}
		})
	}
}

// shown returns a part of a text that the page shows as it is. The page replaces invisible
// characters by signs.
func shown(text string) string {
	text, _, _ = strings.Cut(text, "\u200b")
	for _, joiner := range []string{"\u200d", "\ufe0f"} {
		text, _, _ = strings.Cut(text, joiner)
	}
	return cut(text, 100)
}

// foreign is a function that finds elements and attributes that the page itself does not make.
const foreign = `() => {
	const wrong = [];
	for (const e of document.querySelectorAll("script, img, iframe, object, embed, style, [style*=expression]")) {
		const own = e.matches("head script[src]") && !e.textContent || e.matches("img[src='icon.svg']");
		if (!own) wrong.push(e.outerHTML.slice(0, 100));
	}
	for (const e of document.querySelectorAll("*")) for (const a of e.attributes) {
		if (a.name.startsWith("on")) wrong.push(e.tagName + " has " + a.name);
		if (["href", "src", "action"].includes(a.name) && new URL(a.value, location.href).origin !== location.origin) wrong.push(a.name + "=" + a.value);
	}
	return wrong;
}`
