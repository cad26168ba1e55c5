//go:build web

package webtest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
)

// controls are the roles of elements that users operate.
var controls = map[string]bool{
	"button": true, "link": true, "textbox": true, "searchbox": true, "checkbox": true, "radio": true, "combobox": true, "listbox": true,
	"option": true, "menuitem": true, "tab": true, "switch": true, "slider": true, "spinbutton": true,
}

// nameless returns the controls, pictures, dialogs and tables of the page that have no name for a
// screen reader.
func (p *tab) nameless() []string {
	p.t.Helper()
	var found []string
	call(p, accessibility.Enable, cdp.Empty{})
	for _, node := range call(p, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
		role, name := axText(node.Role), axText(node.Name)
		must := controls[role] || role == "image" || role == "dialog" || role == "table" || role == "grid" || role == "progressbar" || role == "meter"
		if !node.Ignored && must && strings.TrimSpace(name) == "" {
			found = append(found, fmt.Sprintf("%s without a name: %s", role, p.markup(node)))
		}
	}
	return found
}

// markup returns the begin of the HTML of a node.
func (p *tab) markup(node *accessibility.Node) string {
	p.t.Helper()
	found := call(p, dom.GetOuterHTML, dom.GetOuterHTMLParams{BackendNodeID: node.BackendDOMNodeID})
	return found.OuterHTML[:min(len(found.OuterHTML), 160)]
}

func axText(v *accessibility.Value) string {
	if v == nil {
		return ""
	}
	var text string
	_ = json.Unmarshal(v.Value, &text)
	return text
}

// structure is a function that returns what a page lacks for users of a screen reader.
const structure = `() => {
	const wrong = [];
	const headings = [...document.querySelectorAll("h1, h2, h3, h4")].filter((h) => h.checkVisibility()).map((h) => Number(h.tagName[1]));
	if (headings.filter((h) => h === 1).length !== 1) wrong.push("h1: " + headings.filter((h) => h === 1).length);
	headings.forEach((h, i) => { if (i > 0 && h > headings[i - 1] + 1) wrong.push("h" + headings[i - 1] + " is followed by h" + h); });
	if (document.querySelectorAll("main").length !== 1) wrong.push("main: " + document.querySelectorAll("main").length);
	if (!document.querySelector("nav[aria-label]")) wrong.push("nav with a name");
	if (!document.documentElement.lang) wrong.push("lang");
	if (!document.title) wrong.push("title");
	if (!document.querySelector("[aria-live], [role=status], [role=log], [role=alert]")) wrong.push("a live region");
	const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
	for (const id of new Set(ids)) if (ids.filter((i) => i === id).length > 1) wrong.push("id " + id + " stands twice");
	for (const e of document.querySelectorAll("[aria-labelledby], [aria-describedby], [aria-controls]"))
		for (const a of ["aria-labelledby", "aria-describedby", "aria-controls"])
			for (const id of (e.getAttribute(a) ?? "").split(" ").filter(Boolean))
				if (!document.getElementById(id)) wrong.push(a + " names " + id + ", which is not there");
	for (const row of document.querySelectorAll("[role=row]")) if (!row.closest("[role=table], [role=grid], [role=treegrid], table")) wrong.push("a row outside a table");
	return wrong;
}`

// faint is a function that returns the texts of a page with a contrast of less than 4.5. It
// computes the contrast from the styles, including transparent layers.
const faint = `() => {
	const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
	const parsed = new Map();
	const parse = (text) => { // any colour that CSS can say, as r, g, b of 0 to 255 and alpha of 0 to 1
		if (parsed.has(text)) return parsed.get(text);
		const m = text.match(/^rgba?\(([\d.]+), ([\d.]+), ([\d.]+)(?:, ([\d.]+))?\)$/);
		let c;
		if (m) c = [Number(m[1]), Number(m[2]), Number(m[3]), m[4] === undefined ? 1 : Number(m[4])];
		else {
			canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
			const d = canvas.getImageData(0, 0, 1, 1).data;
			c = [d[0], d[1], d[2], d[3] / 255];
		}
		parsed.set(text, c);
		return c;
	};
	const over = (top, below) => { const a = top[3]; return [0, 1, 2].map((i) => top[i] * a + below[i] * (1 - a)).concat(1); };
	const luminance = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const dark = matchMedia("(prefers-color-scheme: dark)").matches;
	const wrong = new Map();
	const behind = (element) => { // the colours from the text to the canvas, the opacity of each applied
		const layers = [];
		for (let e = element; e; e = e.parentElement) {
			const style = getComputedStyle(e);
			layers.push({colour: parse(style.backgroundColor), opacity: Number(style.opacity), image: style.backgroundImage !== "none"});
		}
		return layers;
	};
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	let seen = 0;
	for (let node = walker.nextNode(); node; node = walker.nextNode()) {
		const element = node.parentElement;
		if (!node.data.trim() || !element.checkVisibility({opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true})) continue;
		if (element.closest("[disabled], [aria-disabled=true], script, style, noscript, option, .unseen, svg")) continue;
		const range = document.createRange(); range.selectNodeContents(node);
		const box = range.getBoundingClientRect();
		if (box.width < 2 || box.height < 2) continue; // for screen readers only
		seen++;
		const layers = behind(element);
		let back = parse(getComputedStyle(document.documentElement).backgroundColor);
		if (back[3] === 0) back = dark ? [18, 18, 18, 1] : [255, 255, 255, 1];
		let opacity = 1;
		for (const layer of layers.toReversed()) { opacity *= layer.opacity; back = over([...layer.colour.slice(0, 3), layer.colour[3] * opacity], back); }
		const colour = parse(getComputedStyle(element).color);
		const text = over([...colour.slice(0, 3), colour[3] * opacity], back);
		const [low, high] = [luminance(text), luminance(back)].sort((a, b) => a - b);
		const contrast = (high + 0.05) / (low + 0.05);
		if (contrast < 4.5) {
			const where = element.tagName.toLowerCase() + (element.className ? "." + element.className : "");
			const key = where + " " + getComputedStyle(element).color + " on " + back.slice(0, 3).map(Math.round);
			if (!wrong.has(key)) wrong.set(key, contrast.toFixed(2) + ": " + key + ": " + node.data.trim().slice(0, 40));
		}
	}
	return {seen, wrong: [...wrong.values()]};
}`

// theme sets the system's theme, light or dark, for the page.
func (p *tab) theme(name string) {
	p.t.Helper()
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
}

// TestAccessibility checks that every control of every view has a name for screen readers, and that
// the contrast of every text is at least 4.5, in both themes.
func TestAccessibility(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	newCrowd(t, s, "orders/42")
	p := open(t, s.url)
	for _, view := range views("orders/42") {
		p.show(view)
		for _, what := range p.nameless() {
			t.Errorf("%s: %s", view, what)
		}
		for _, what := range eval[[]string](p, structure) {
			t.Errorf("%s: %s", view, what)
		}
		for _, theme := range []string{"light", "dark"} {
			p.theme(theme)
			checkContrast(t, p, view+", "+theme)
		}
	}
}

func checkContrast(t *testing.T, p *tab, where string) {
	t.Helper()
	got := eval[struct {
		Seen  int
		Wrong []string
	}](p, faint)
	if got.Seen < 5 {
		t.Errorf("%s: only %d texts were seen", where, got.Seen)
	}
	for _, what := range got.Wrong {
		t.Errorf("%s: contrast %s", where, what)
	}
}

// show shows a view, and waits until it is drawn.
func (p *tab) show(view string) {
	p.t.Helper()
	p.view(view)
	p.await("the view "+view+" is drawn", `() => {
		const h1 = document.querySelector("main h1");
		return h1 && !document.querySelector("main [aria-busy=true]");
	}`)
}

//go:embed testdata/axe.min.js
var axe string

// findings is a function that returns the violations that axe-core finds in a page.
const findings = `async () => {
	const {violations} = await axe.run(document, {resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]});
	return violations.flatMap((v) => v.nodes.slice(0, 3).map((n) => v.id + ": " + n.target.join(" ") + ": " + n.html.slice(0, 160)));
}`

// TestAxe checks that axe-core finds no violation in any view and dialog, in each theme and width.
func TestAxe(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	newCrowd(t, s, "orders/42")
	p := open(t, s.url)
	eval[any](p, "() => {"+axe+"; return null; }")
	found := func(where string) {
		t.Helper()
		for _, what := range eval[[]string](p, findings) {
			t.Errorf("%s: %s", where, what)
		}
	}
	for _, screen := range screens {
		call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: screen.width, Height: screen.height, DeviceScaleFactor: 1})
		for _, theme := range []string{"light", "dark"} {
			if theme == "dark" && screen == screens["laptop"] {
				continue // the desk screen is like this
			}
			p.theme(theme)
			for _, view := range views("orders/42") {
				p.show(view)
				p.settle()
				found(fmt.Sprint(view, ", ", theme, ", ", screen.width))
			}
			p.shortcut("/")
			p.focused("the search", `(e) => e.name === "search"`)
			p.typeText("orders")
			p.await("something is found", `() => document.querySelector("[role=option]")`)
			found(fmt.Sprint("search, ", theme, ", ", screen.width))
			p.press(escape)
			p.show("lock?name=orders%2F42")
			p.settle()
			p.tabTo("the button to break it", `(e) => e.matches("button.act.break")`)
			p.press(enter)
			p.await("the dialog is open", `() => document.querySelector("dialog[open]")`)
			found(fmt.Sprint("break, ", theme, ", ", screen.width))
			p.press(escape)
			p.await("the dialog is closed", `() => !document.querySelector("dialog[open]")`)
		}
	}
}
