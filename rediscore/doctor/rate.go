package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// A rate tells from a second look at a server's clock.
const (
	rateLimit   = 0.005 // by how much it may differ from ours
	rateLongest = time.Second
	rateSpan    = 400 // uncertainties of one look, so that both are half of rateLimit
)

// lookAtRate looks at the clock of a server for the second time, to tell how fast it runs.
func (s *survey) lookAtRate(ctx context.Context, server *server) {
	first := server.timing
	if !ask.Sleep(ctx, min(rateSpan*2*first.uncertainty, rateLongest)) {
		return
	}
	if second := s.measure(ctx, server); second.err == nil {
		s.add(rateFinding(server.addr, first, second))
	}
}

// rateFinding judges how fast a server's clock runs, from two looks at it. Ours is the
// monotonic clock, by which holders count.
func rateFinding(addr string, first, second timing) driver.Finding {
	passed := second.at.Sub(first.at)
	ahead := second.shown.Sub(first.shown) - passed
	blur := first.uncertainty + second.uncertainty
	f := driver.Finding{Key: "clock_rate", Server: addr, Measures: map[string]time.Duration{
		"passed": passed, "ahead": ahead, "uncertainty": blur,
	}}
	part := func(d time.Duration) float64 { return 100 * float64(d) / float64(passed) }
	speed := "faster"
	if ahead < 0 {
		speed = "slower"
	}
	f.Text = fmt.Sprintf("%.2f %% %s than ours, give or take %.2f %%", part(ahead.Abs()), speed, part(blur))
	if ahead.Abs() > time.Duration(rateLimit*float64(passed))+blur {
		f.Level = driver.Warn
		f.Text += ": a time service slews one of the two clocks, or set it meanwhile; up to 10 % are covered (chrony: maxslewrate 1000 makes it slower)"
	}
	return f
}
