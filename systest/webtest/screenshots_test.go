//go:build web

package webtest

import (
	"bytes"
	"flag"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// pictures is the directory for the pictures of make screenshots.
var pictures = flag.String("screenshots", "", "the directory for pictures of the page; none are made without it")

// looks are the themes and sizes of the pictures.
var looks = map[string]struct {
	theme         string
	width, height int64
}{
	"light": {"light", 1280, 800},
	"dark":  {"dark", 1280, 800},
	"phone": {"light", 360, 720},
}

// TestScreenshots makes a picture of each view of the demo, in light, in dark, and on a phone. It
// checks that no texts overlap and that no view is wider than the window.
func TestScreenshots(t *testing.T) {
	t.Parallel()
	demo := testsvc.Program(t, shared.holdfast, "http://", func(addr, _ string) []string {
		return []string{"serve", "--demo", "--listen", addr, "--log", "text,error"}
	})
	p := open(t, demo.URL+"/")
	p.awaitText("demo")
	p.show("locks")
	p.await("somebody has frozen a lock", `() => document.querySelector(".is-frozen a")`)
	name := eval[string](p, `() => document.querySelector(".is-frozen a").textContent`)
	if *pictures != "" {
		p.sleepIn(90 * time.Second) // so that there is a history to show
	}
	for _, address := range views(name) {
		view, _, _ := strings.Cut(address, "?")
		p.show(address)
		for look, l := range looks {
			p.theme(l.theme)
			call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: l.width, Height: l.height, DeviceScaleFactor: 1})
			p.settle()
			if wide := eval[int64](p, `() => document.documentElement.scrollWidth`); wide > l.width {
				t.Errorf("%s, %s: the page is %d wide where there are %d", view, look, wide, l.width)
			}
			for _, what := range eval[[]string](p, overlapping) {
				t.Errorf("%s, %s: %s", view, look, what)
			}
			if *pictures != "" {
				p.picture(filepath.Join(*pictures, view+"-"+look+".png"))
			}
		}
	}
}

// overlapping is a function that returns the pairs of texts that overlap.
const overlapping = `() => {
	const boxes = [], wrong = [];
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let node = walker.nextNode(); node; node = walker.nextNode()) {
		const e = node.parentElement;
		if (!node.data.trim() || !e.checkVisibility({opacityProperty: true, visibilityProperty: true}) || e.closest(".unseen, .skip, .notice.bad, dialog:not([open]), select, option, noscript, script, svg")) continue;
		const range = document.createRange();
		range.selectNodeContents(node);
		for (const box of range.getClientRects()) {
			let seen = {left: box.left, top: box.top, right: box.right, bottom: box.bottom};
			for (let c = e; c; c = c.parentElement) { // what is cut off stands on nothing
				const s = getComputedStyle(c);
				if (s.clipPath !== "none" || s.clip !== "auto") seen.right = seen.left; // for screen readers only
				if (s.overflowX === "visible" && s.overflowY === "visible") continue;
				const r = c.getBoundingClientRect();
				seen = {left: Math.max(seen.left, r.left), top: Math.max(seen.top, r.top), right: Math.min(seen.right, r.right), bottom: Math.min(seen.bottom, r.bottom)};
			}
			if (seen.right - seen.left > 2 && seen.bottom - seen.top > 2) boxes.push({e, text: node.data.trim().slice(0, 30), ...seen});
		}
	}
	for (const [i, a] of boxes.entries()) for (const b of boxes.slice(i + 1)) {
		const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left), high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
		if (wide > 3 && high > 5 && a.e !== b.e && !getComputedStyle(a.e.closest("header, .notice.bad") ?? a.e).position.match(/sticky|fixed/)) wrong.push(a.text + " stands on " + b.text);
	}
	return wrong.slice(0, 5);
}`

// picture writes the visible part of the page to a file, in few colours so that the file is small.
func (p *tab) picture(file string) {
	p.t.Helper()
	shot, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	p.check("take a picture", err)
	full, err := png.Decode(bytes.NewReader(shot))
	p.check("read a picture", err)
	few := image.NewPaletted(full.Bounds(), commonest(full))
	draw.Draw(few, few.Bounds(), full, image.Point{}, draw.Src)
	var out bytes.Buffer
	p.check("make a picture", (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, few))
	p.check("a directory for it", os.MkdirAll(filepath.Dir(file), 0o755))
	p.check("write a picture", os.WriteFile(file, out.Bytes(), 0o644))
	p.t.Logf("%s: %d KiB", strings.TrimPrefix(file, "../"), out.Len()/1024)
}

// commonest returns the most common colours of a picture, up to 256.
func commonest(m image.Image) color.Palette {
	count := map[color.RGBA]int{}
	for y := m.Bounds().Min.Y; y < m.Bounds().Max.Y; y++ {
		for x := m.Bounds().Min.X; x < m.Bounds().Max.X; x++ {
			count[color.RGBAModel.Convert(m.At(x, y)).(color.RGBA)]++
		}
	}
	all := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int { return count[b] - count[a] })
	var p color.Palette
	for _, c := range all[:min(len(all), 256)] {
		p = append(p, c)
	}
	return p
}
