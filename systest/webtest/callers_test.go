//go:build web

package webtest

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"

	"github.com/holdfast-locks/holdfast"
)

// A door is a site that authenticates its callers by tokens.
type door struct {
	*site
	tokens map[string]string // by name of the caller
}

// newDoor starts a site for an operator, who may do everything, and a guest, who may only read.
func newDoor(t testing.TB) *door {
	t.Helper()
	file := filepath.Join(t.TempDir(), "callers.json")
	d := &door{tokens: map[string]string{}}
	for name, rights := range map[string][]string{"operator": {"read", "acquire", "break", "once"}, "guest": {"read"}} {
		args := []string{"serve", "add-caller", file, name, "--prefix", ""}
		for _, right := range rights {
			args = append(args, "--right", right)
		}
		out, err := exec.Command(shared.holdfast, args...).Output()
		if err != nil {
			t.Fatalf("add-caller: %v", err)
		}
		d.tokens[name] = strings.TrimSpace(string(out))
	}
	d.site = newSite(t, "--callers", file)
	return d
}

// signIn opens the page, and signs in by keyboard alone.
func (d *door) signIn(t testing.TB, name string) *tab {
	t.Helper()
	p := newPage(t)
	p.expect(`^log: network: .* 401 \(Unauthorized\)`) // then the page asks for a token
	p.first(d.url)
	p.await("the field for the token has the keyboard", `() => document.activeElement?.name === "token"`)
	p.typeText(d.tokens[name])
	p.press(enter)
	p.await("one is signed in", `(name) => document.querySelector(".caller")?.innerText.includes(name)`, name)
	return p
}

// TestSignIn checks that the page asks an unknown user for a token and refuses a wrong one. Scripts
// cannot read the token again. After the user has signed out, the page shows no locks.
func TestSignIn(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	acquire(t, d.worker("packer"), "orders/42", holdfast.AcquireOptions{})
	p := newPage(t)
	p.expect(`^log: network: .* 401 \(Unauthorized\)`)
	p.first(d.url + "#/locks")
	p.awaitText("Sign in")
	wrong := []byte(d.tokens["guest"])
	slices.Reverse(wrong[len(wrong)-8:])
	p.typeText(string(wrong))
	p.press(enter)
	p.awaitText("does not know this token")
	p.awaitNoText("orders/42")

	q := d.signIn(t, "guest")
	q.show("locks")
	q.awaitText("orders/42")
	q.awaitText("read-only")
	q.show("lock?name=orders%2F42")
	q.awaitText("Read-only: as guest")
	d.checkCookie(t, q)
	if url := eval[string](q, `() => location.href + document.cookie + JSON.stringify({...localStorage, ...sessionStorage})`); strings.Contains(url, d.tokens["guest"]) {
		t.Errorf("the token stands in %q", url)
	}
	again := q.besideWith(d.url+"#/locks", p.expected)
	again.awaitText("orders/42") // the session is valid in all tabs of the browser

	q.tabTo("sign out", `(e) => e.innerText === "Sign out"`)
	q.press(enter)
	q.awaitText("Paste the token")
	q.awaitNoText("orders/42")
	if cookies := call(q, network.GetCookies, network.GetCookiesParams{URLs: []string{d.url + "v1/session"}}).Cookies; len(cookies) != 0 {
		t.Errorf("after the sign-out there is %+v", cookies[0])
	}
}

func (d *door) checkCookie(t *testing.T, p *tab) {
	t.Helper()
	cookies := call(p, network.GetCookies, network.GetCookiesParams{URLs: []string{d.url + "v1/session"}}).Cookies
	if len(cookies) != 1 {
		t.Fatalf("there are %d cookies", len(cookies))
	}
	c := cookies[0]
	if c.Name != "holdfast_session" || !c.HTTPOnly || c.SameSite != network.CookieSameSiteStrict || c.Secure || strings.Contains(c.Value, d.tokens["guest"]) {
		t.Errorf("the cookie is %+v", c)
	}
}
