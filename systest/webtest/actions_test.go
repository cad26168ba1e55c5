//go:build web

package webtest

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// TestActionsByKeyboard checks that a user can do everything with the keyboard alone: sign in, find
// a lock, open it, break it, hold it as a person, release it, and forget a do-once result.
func TestActionsByKeyboard(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.worker("packer")
	l := acquire(t, c, "orders/42", holdfast.AcquireOptions{TTL: time.Minute})
	acquire(t, c, "orders/43", holdfast.AcquireOptions{TTL: time.Minute})
	if _, err := c.Once(t.Context(), "mail/42", nil, func(context.Context, *holdfast.Lease) ([]byte, error) { return []byte("sent"), nil }); err != nil {
		t.Fatal(err)
	}
	p := d.signIn(t, "operator")
	p.tabTo("the link to the locks", `(e) => e.matches("nav a") && e.innerText === "Locks"`)
	p.press(enter)
	p.focused("the heading", `(e) => e.matches("h1") && e.innerText === "Locks"`)
	p.await("there are two locks", `() => document.querySelectorAll("[role=row] a").length === 2`)
	p.tabTo("the filter", `(e) => e.name === "prefix"`)
	p.typeText("orders/42")
	p.await("there is one lock", `() => document.querySelectorAll("[role=row] a").length === 1`)
	p.await("the filter is in the address", `() => location.hash.includes("orders")`)
	p.press(down)
	p.focused("the table", `(e) => e.matches("[role=grid]")`)
	p.press(enter)
	p.focused("the heading of the lock", `(e) => e.matches("h1") && e.innerText === "orders/42"`)
	eval[any](p, `() => { history.back(); return null; }`)
	p.focused("the heading of the list", `(e) => e.matches("h1") && e.innerText === "Locks"`)
	p.await("the filter and the row are as they were", `() => document.querySelector("input[name=prefix]").value === "orders/42" && document.querySelector("[role=row][aria-selected=true] a")?.textContent === "orders/42"`)
	p.shortcut("/")
	p.focused("the search", `(e) => e.name === "search"`)
	p.typeText("packer")
	p.await("the holder is found", `() => document.querySelector("[role=option]")`)
	p.press(escape)
	p.focused("what had the keyboard before", `(e) => e.matches("h1")`)
	p.shortcut("?")
	p.awaitText("this list")
	p.press(escape)
	p.shortcut("/")
	p.focused("the search", `(e) => e.name === "search"`)
	p.typeText("orders/42")
	p.press(enter)
	p.focused("the heading of the lock", `(e) => e.matches("h1") && e.innerText === "orders/42"`)

	p.tabTo("the button to break it", `(e) => e.matches("button.act.break")`)
	p.press(enter)
	p.await("the dialog has the keyboard", `() => document.activeElement?.closest("dialog[open]")`)
	p.tabTo("the field for the reason", `(e) => e.name === "reason"`)
	p.typeText("its host is gone")
	p.press(enter)
	p.await("the name is asked for", `() => document.querySelector("dialog[open] :invalid")`)
	if !held(t, c, "orders/42", l.Token()) {
		t.Fatal("it was broken, and nobody has typed its name")
	}
	p.tabTo("the field for the name", `(e) => e.matches("dialog input") && e.name !== "reason"`)
	p.typeText("orders/42")
	p.press(enter)
	p.await("the dialog is closed", `() => !document.querySelector("dialog[open]")`)
	p.focused("the page", `(e) => e.matches("main")`)
	<-l.Context().Done()
	breaks, err := c.Records().Breaks(t.Context(), "orders/42")
	if err != nil || len(breaks) != 1 || breaks[0].Author != "operator" || breaks[0].Reason != "its host is gone" {
		t.Fatalf("it was broken by %+v, %v", breaks, err)
	}
	p.awaitText("its host is gone")

	p.tabTo("the button to hold it", `(e) => e.matches("button.act.hold")`)
	p.press(enter)
	p.tabTo("the field for the reason", `(e) => e.name === "reason"`)
	p.typeText("no shipping today")
	p.press(enter)
	p.awaitText("frozen by a person")
	p.focused("the page", `(e) => e.matches("main")`)
	p.awaitText("no shipping today")
	p.tabTo("the button to give it back", `(e) => e.matches("button.act.release")`)
	p.press(enter)
	p.tabTo("the button of the dialog", `(e) => e.matches("dialog button.act")`)
	p.press(enter)
	p.await("nobody has it", `() => document.querySelector(".summary")?.innerText.includes("free")`)

	p.show("lock?name=mail%2F42")
	p.tabTo("the button to forget it", `(e) => e.matches("button.act.forget")`)
	p.press(enter)
	p.tabTo("the field for the name", `(e) => e.matches("dialog input")`)
	p.typeText("mail/42")
	p.press(enter)
	p.await("the dialog is closed", `() => !document.querySelector("dialog[open]")`)
	if state, err := c.Records().Once(t.Context(), "mail/42"); err != nil || state.State != holdfast.OnceAbsent {
		t.Errorf("mail/42 is %+v, %v", state, err)
	}
}

// held reports whether the lease with a token has the lock.
func held(t testing.TB, c *holdfast.Client, name string, token uint64) bool {
	t.Helper()
	l, err := c.Inspect(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return len(l.Holders) == 1 && l.Holders[0].Token == token
}

// breakFrom is a function that sends a request to break a lock from a page. It returns the status,
// or 0 if the page may not read the reply.
const breakFrom = `async (url, token, mode) => {
	const r = await fetch(url, {method: "POST", mode, credentials: "include", body: JSON.stringify({fencing_token: token, reason: "mine"}),
		headers: mode === "no-cors" ? {"Content-Type": "text/plain"} : {"Content-Type": "application/json"}}).catch(() => ({status: 0}));
	return r.status;
}`

// TestBreakIsRefused checks that the server refuses to break a lock for a caller without the right,
// for a page of another origin, and with the token of an ended lease.
func TestBreakIsRefused(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.worker("packer")
	l := acquire(t, c, "orders/42", holdfast.AcquireOptions{TTL: time.Minute})
	path := "v1/locks/~/break?name=orders%2F42"
	unharmed := func(how string) {
		t.Helper()
		if !held(t, c, "orders/42", l.Token()) {
			t.Fatalf("it was broken %s", how)
		}
	}

	guest := d.signIn(t, "guest")
	guest.show("lock?name=orders%2F42")
	guest.awaitText("Read-only")
	if eval[bool](guest, `() => Boolean(document.querySelector("button.act"))`) {
		t.Error("there is a button for somebody without the right")
	}
	guest.expect(`^log: network: .* 403 \(Forbidden\)`)
	if status := eval[int](guest, breakFrom, path, l.Token(), "cors"); status != http.StatusForbidden {
		t.Errorf("without the right: status %d", status)
	}
	unharmed("without the right")

	// Another port is another origin of the same site: the browser sends the cookie from there too.
	operator := d.signIn(t, "operator")
	evil := serveHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!doctype html><title>win a prize</title><form method=post enctype=text/plain><button>win</button></form>`)
	}))
	other := operator.besideWith(evil+"/", operator.expected)
	other.expect(`^a request to another host: ` + d.url)
	other.expect(`CORS|ERR_FAILED|ERR_BLOCKED_BY_RESPONSE.NotSameOrigin|403`)
	for _, mode := range []string{"no-cors", "cors"} {
		eval[int](other, breakFrom, d.url+path, l.Token(), mode)
		unharmed("from another origin, " + mode)
	}
	eval[any](other, `(url) => { const f = document.querySelector("form"); f.action = url; f.submit(); return null; }`, d.url+path)
	other.await("the form is refused", `() => document.body.innerText.includes("cross-site")`)
	unharmed("by a form")

	operator.show("lock?name=orders%2F42")
	operator.tabTo("the button to break it", `(e) => e.matches("button.act.break")`)
	operator.press(enter)
	stale := l.Token()
	l.Release(t.Context())
	l = acquire(t, c, "orders/42", holdfast.AcquireOptions{TTL: time.Minute})
	operator.await("the dialog says that the lease is over", `() => document.querySelector("dialog[open]")?.innerText.includes("This lease has ended")`)
	operator.expect(`^log: network: .* 410 \(Gone\)`)
	if status := eval[int](operator, breakFrom, path, stale, "cors"); status != http.StatusGone {
		t.Errorf("by a stale token: status %d", status)
	}
	unharmed("by a stale token")
	if status := eval[int](operator, breakFrom, path, l.Token(), "cors"); status != http.StatusOK {
		t.Errorf("with the right, from the page, by the token that is: status %d", status)
	}
}
