package driver

import (
	"strings"
	"time"
)

// Possession says for people who has the lock, and since when: `held by
// deploy@web-3 (pid 812, deploy.sh) for 12m`. It says when that ends only if nobody
// will put it off: a process renews its lease again and again, so that what is left
// of it says nothing about when the lock is free.
func (b Blocker) Possession() string {
	who := b.Holder.String()
	var since string
	if b.Since >= time.Millisecond {
		since = " for " + Span(b.Since)
	}
	switch {
	case b.Released:
		return "kept closed" + b.another() + b.after()
	case b.Foreign, b.ExpiresIn == Never && b.anonymous():
		return "held by a client that is not holdfast" + b.unless()
	case b.Holder.Person && b.ExpiresIn > 0:
		return "held by " + who + since + ", ends in " + Span(b.ExpiresIn)
	}
	return "held by " + who + since
}

// another says how long the name stays closed.
func (b Blocker) another() string {
	if b.ExpiresIn <= 0 {
		return ""
	}
	return " for another " + Span(b.ExpiresIn)
}

// after says who closed the name. The process has ended, or is about to.
func (b Blocker) after() string {
	if b.anonymous() {
		return ""
	}
	who := b.Holder
	who.PID = 0
	return " after " + who.String() + " released it"
}

// unless says when a foreign lock ends: nobody knows whether its client renews it.
func (b Blocker) unless() string {
	switch {
	case b.ExpiresIn == Never:
		return ", with no expiry"
	case b.ExpiresIn > 0:
		return ", ends in " + Span(b.ExpiresIn) + " unless it is renewed"
	}
	return ""
}

// anonymous reports whether nothing is known of the holder.
func (b Blocker) anonymous() bool { return b.Holder.String() == Holder{}.String() }

// Possession says for people who has the lease, as Blocker.Possession does.
func (h Holding) Possession() string { return h.blocker().Possession() }

// blocker describes the lease to those who want the lock, and has neither its token
// nor its ID (INVARIANT I4).
func (h Holding) blocker() Blocker {
	return Blocker{Holder: h.Holder, Since: h.Since, ExpiresIn: h.ExpiresIn, Released: h.Released, Foreign: h.Foreign()}
}

// Span prints a duration for people, who need no more than two units of it: 12m,
// 3h5m, 1.4s, 250ms.
func Span(d time.Duration) string {
	unit := time.Minute
	switch {
	case d < time.Second:
		unit = time.Millisecond
	case d < 10*time.Second:
		unit = 100 * time.Millisecond
	case d < 10*time.Minute:
		unit = time.Second
	}
	s := d.Round(unit).String()
	for _, none := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, none) {
			s = s[:len(s)-2]
		}
	}
	return s
}
