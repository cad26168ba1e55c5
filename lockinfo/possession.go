package lockinfo

import "time"

// A Possession is what other clients may know of a lease. It has neither its token nor its ID
// (INVARIANT I4).
type Possession struct {
	Holder    Holder // zero if a client that is not holdfast holds the lock
	Since     time.Duration
	ExpiresIn time.Duration // Never if it has no end
	Released  bool
	Foreign   bool // a client that is not holdfast holds the lock, or the lock is left free for one
}

// String describes for people who has the lock, and since when: `held by
// deploy@web-3 (pid 812, deploy.sh) for 12m`. It gives the end only of a lease that is
// not renewed: a process renews its lease again and again, so the time left does not
// tell when the lock is free.
func (p Possession) String() string {
	who := p.Holder.String()
	var since string
	if p.Since >= time.Millisecond {
		since = " for " + Span(p.Since)
	}
	switch {
	case p.Released:
		return "kept closed" + p.another() + p.after()
	case p.Foreign, p.ExpiresIn == Never && p.anonymous():
		return "held by a client that is not holdfast" + p.unless()
	case p.Holder.Person && p.ExpiresIn > 0:
		return "held by " + who + since + ", ends in " + Span(p.ExpiresIn)
	}
	return "held by " + who + since
}

// another describes how long the name stays closed.
func (p Possession) another() string {
	if p.ExpiresIn <= 0 {
		return ""
	}
	return " for another " + Span(p.ExpiresIn)
}

// after names the client that closed the name. It leaves out the PID, because that process has
// ended, or may end soon.
func (p Possession) after() string {
	if p.anonymous() {
		return ""
	}
	who := p.Holder
	who.PID = 0
	return " after " + who.String() + " released it"
}

// unless describes when a foreign lock ends. Its client may or may not renew it.
func (p Possession) unless() string {
	switch {
	case p.ExpiresIn == Never:
		return ", with no expiry"
	case p.ExpiresIn > 0:
		return ", ends in " + Span(p.ExpiresIn) + " unless it is renewed"
	}
	return ""
}

// anonymous reports whether nothing is known of the holder.
func (p Possession) anonymous() bool { return p.Holder.String() == Holder{}.String() }

// Possession describes for people who has the lease.
func (h Holding) Possession() string {
	return Possession{Holder: h.Holder, Since: h.Since, ExpiresIn: h.ExpiresIn, Released: h.Released, Foreign: h.Foreign()}.String()
}
