package waitline

import (
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/render"
	"github.com/holdfast-locks/holdfast/driver"
)

// A State says how a wait stands. Whoever waits without a place in the queue leaves
// that out.
type State = holdfast.WaitState

// Text says in one line what is waited for: `waiting for deploy: 2nd of 5 ·
// deploy@web-3 (pid 812, deploy.sh) has had it for 12m: "release 1.4"`. A lease that
// its holder renews has no end that could be told.
func Text(s State) string {
	var parts []string
	for _, part := range []string{place(s), obstacle(s)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	text := "waiting for " + render.Plain(s.Name)
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, " · ")
	}
	return text
}

// place says which turn is ours.
func place(s State) string {
	switch {
	case s.Outage != nil || s.Place == 0: // in an outage nobody knows whether it is there still
		return ""
	case s.Queue < s.Place:
		return ordinal(s.Place)
	}
	return ordinal(s.Place) + " of " + strconv.Itoa(s.Queue)
}

// ordinal returns 1st, 2nd, 3rd, 4th, 11th, 21st, ...
func ordinal(n int) string {
	suffix := "th"
	if n/10%10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}

// obstacle says what is in the way, and nothing if that is not known.
func obstacle(s State) string {
	who := s.Holder.String()
	switch {
	case s.Outage != nil:
		return "the store does not answer: " + render.Plain(s.Outage.Error())
	case s.Released, s.Foreign, s.ExpiresIn == holdfast.Never:
		return render.Plain(possession(s))
	case who == holdfast.Holder{}.String():
		return ""
	}
	text := render.Plain(who)
	if s.Since < time.Second {
		text += " has it"
	} else {
		text += " has had it for " + driver.Span(s.Since.Truncate(time.Second))
	}
	if s.Holder.Person && s.ExpiresIn > 0 { // nobody renews it
		text += " and keeps it for another " + driver.Span(s.ExpiresIn.Truncate(time.Second))
	}
	if s.Holder.Reason != "" {
		text += `: "` + render.Plain(s.Holder.Reason) + `"`
	}
	return text
}

// possession is what errors say of the same.
func possession(s State) string {
	return driver.Blocker{
		Holder: s.Holder, Since: s.Since.Truncate(time.Second), ExpiresIn: whole(s.ExpiresIn), Released: s.Released, Foreign: s.Foreign,
	}.Possession()
}

// whole is for times that are counted down: a part of a second is one.
func whole(d time.Duration) time.Duration {
	if d < 0 {
		return d
	}
	return (d + time.Second - 1).Truncate(time.Second)
}

// after returns s as it is a time later, if nothing has changed.
func after(s State, d time.Duration) State {
	s.Waited += d
	if s.Since > 0 {
		s.Since += d
	}
	if s.ExpiresIn != holdfast.Never {
		s.ExpiresIn = max(0, s.ExpiresIn-d)
	}
	return s
}
