package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/internal/probe"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
)

const (
	samples   = 11          // readings of the clock
	leadLimit = time.Second // tokens may be this far ahead of the clock
)

// A timing is the offset of a server's clock and the round trip to the server.
type timing struct {
	roundTrip   time.Duration // the median
	offset      time.Duration // the server's clock less ours
	uncertainty time.Duration // of offset
	at          time.Time     // the local time of the measurement
	shown       time.Time     // the server's clock at that time
	err         error         // why there is no offset
}

// measure reads the clock of a server several times. The reading with the shortest round trip is
// the most exact, because the server read its clock within it.
func (s *survey) measure(ctx context.Context, server *server) (t timing) {
	var trips []time.Duration
	for range samples {
		sent := time.Now()
		reply, err := s.tell(ctx, server.client, "TIME")
		trip := time.Since(sent)
		// A refusal takes as long as any other reply.
		if err != nil && !errors.Is(err, driver.ErrPermission) {
			t.err = err
			return t
		}
		trips = append(trips, trip)
		if err != nil {
			t.err = err
			continue
		}
		now, ok := parseTime(reply)
		if !ok {
			t.err = form.Malformed("time", reply)
			return t
		}
		if t.uncertainty == 0 || trip/2 < t.uncertainty {
			t.at, t.shown, t.uncertainty = sent.Add(trip/2), now, max(trip/2, 1)
			t.offset = t.shown.Sub(t.at)
		}
	}
	slices.Sort(trips)
	t.roundTrip = trips[len(trips)/2]
	return t
}

// parseTime reads a reply of TIME: seconds and microseconds.
func parseTime(reply any) (time.Time, bool) {
	var sec, usec string
	ok := form.Read(reply, &sec, &usec)
	s, err1 := strconv.ParseInt(sec, 10, 64)
	us, err2 := strconv.ParseInt(usec, 10, 64)
	return time.Unix(s, us*1000), ok && err1 == nil && err2 == nil
}

func (s *survey) lookAtClock(ctx context.Context, server *server) {
	server.timing = s.measure(ctx, server)
	if err := server.timing.err; err != nil {
		s.found(driver.Warn, "clock", server.addr, "%s at its clock", hidden(err))
		return
	}
	s.addOn(server, probe.Clock(server.timing.offset, server.timing.uncertainty))
	s.lookAtRate(ctx, server)
}

// compareClocks compares the clocks of the servers: if one takes over from another, a difference
// matters.
func (s *survey) compareClocks(servers []*server) {
	known := slices.DeleteFunc(slices.Clone(servers), func(s *server) bool { return s.err != nil || s.timing.err != nil })
	if len(known) < 2 {
		return
	}
	byOffset := func(a, b *server) int { return cmp.Compare(a.timing.offset, b.timing.offset) }
	least, most := slices.MinFunc(known, byOffset), slices.MaxFunc(known, byOffset)
	apart := most.timing.offset - least.timing.offset
	f := driver.Finding{Key: "clocks", Measures: map[string]time.Duration{"apart": apart}, Text: "at most " + probe.Brief(apart) + " apart"}
	if apart > probe.ClockStep+least.timing.uncertainty+most.timing.uncertainty {
		f.Level = driver.Warn
		f.Text = "the clock of " + most.addr + " is " + probe.Brief(apart) + " ahead of the clock of " + least.addr +
			": a failover to the one ahead ends leases early by as much: run NTP on both"
	}
	s.add(f)
}

// The rate of a server's clock comes from two measurements.
const (
	rateLimit   = 0.005 // allowed difference from the local rate
	rateLongest = time.Second
	rateSpan    = 400 // the interval, in uncertainties of both; these are then half of rateLimit
)

// lookAtRate measures the clock of a server again, for its rate.
func (s *survey) lookAtRate(ctx context.Context, server *server) {
	first := server.timing
	if !ask.Sleep(ctx, min(rateSpan*2*first.uncertainty, rateLongest)) {
		return
	}
	if second := s.measure(ctx, server); second.err == nil {
		s.add(rateFinding(server.addr, first, second))
	}
}

// rateFinding judges the rate of a server's clock by two measurements. It compares it with the
// local monotonic clock, which holders use.
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
