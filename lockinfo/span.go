package lockinfo

import (
	"strings"
	"time"
)

// Span formats a duration for people, with at most two units: 12m, 3h5m, 1.4s, 250ms.
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
