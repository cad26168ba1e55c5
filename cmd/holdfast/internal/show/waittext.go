package show

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// WaitText describes a wait in one line: `waiting for deploy: 2nd of 5, held 12m by
// deploy@web-3 (pid 812, deploy.sh): "release 1.4"`. A lease that its holder renews has no
// known end.
func WaitText(s holdfast.WaitState) string {
	parts := slices.DeleteFunc([]string{turn(s), obstacle(s)}, func(part string) bool { return part == "" })
	text := "waiting for " + Plain(s.Name)
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}

// waitTextOf returns the text for a window of this width. To fit, it first omits the holder's
// process, then the first words, and then cuts the end.
func waitTextOf(s holdfast.WaitState, columns int) string {
	text := WaitText(s)
	if width(text) > columns {
		s.Holder = withoutProcess(s.Holder)
		text = WaitText(s)
	}
	if width(text) > columns {
		text = strings.TrimPrefix(text, "waiting for ")
	}
	return Fit(text, columns)
}

// turn returns the place of this client in the queue, or "" if it is not known.
func turn(s holdfast.WaitState) string {
	switch {
	case s.Outage != nil || s.Place == 0: // unknown in an outage
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

// obstacle describes what blocks the request, or is empty if that is not known.
func obstacle(s holdfast.WaitState) string {
	who := s.Holder.String()
	switch {
	case s.Outage != nil:
		return "the store does not answer: " + Plain(s.Outage.Error())
	case s.Released, s.Foreign, s.ExpiresIn == holdfast.Never:
		return Plain(possession(s))
	case who == holdfast.Holder{}.String():
		return ""
	}
	text := "held by " + Plain(who)
	if s.Since >= time.Second {
		text = "held " + lockinfo.Span(s.Since.Truncate(time.Second)) + " by " + Plain(who)
	}
	if s.Holder.Person && s.ExpiresIn > 0 { // a person's lease is not renewed
		text += ", ends in " + lockinfo.Span(s.ExpiresIn.Truncate(time.Second))
	}
	if s.Holder.Reason != "" {
		text += `: "` + Plain(s.Holder.Reason) + `"`
	}
	return text
}

// possession describes the blocker as errors do.
func possession(s holdfast.WaitState) string {
	return driver.Blocker{
		Holder: s.Holder, Since: s.Since.Truncate(time.Second), ExpiresIn: whole(s.ExpiresIn), Released: s.Released, Foreign: s.Foreign,
	}.Possession()
}

// whole rounds up to seconds, for times that are counted down.
func whole(d time.Duration) time.Duration {
	if d < 0 {
		return d
	}
	return (d + time.Second - 1).Truncate(time.Second)
}

// stateAfter returns s as it is after d, if nothing else has changed.
func stateAfter(s holdfast.WaitState, d time.Duration) holdfast.WaitState {
	s.Waited += d
	if s.Since > 0 {
		s.Since += d
	}
	s.ExpiresIn = timeAfter(s.ExpiresIn, d)
	return s
}

// timeAfter returns the remaining time of a lease after d, unless it is renewed.
func timeAfter(left, d time.Duration) time.Duration {
	if left == holdfast.Never {
		return left
	}
	return max(0, left-d)
}
