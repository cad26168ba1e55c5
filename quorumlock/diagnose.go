package quorumlock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// A Checker is a member that can examine its store. Engine.Diagnose uses it.
type Checker interface {
	driver.Member

	// Check examines the store as driver.Diagnoser does. It also tries the requests of a quorum
	// under a random name, with the quorum's quarantine. run identifies the store: members on the
	// same store return the same text. It is empty if it is unknown. If the store does not reply,
	// Check returns an error.
	//
	// The finding "quarantine" must have the measure "remaining". The finding "clock" must have the
	// measures "offset", of the store's clock from the local one, and "uncertainty".
	Check(ctx context.Context, req driver.DiagnoseRequest, quarantine time.Duration) (run string, d driver.Diagnosis, err error)
}

var _ driver.Diagnoser = (*engine)(nil)

// clockStep is how far the members' clocks may be apart.
const clockStep = 100 * time.Millisecond

// A checkup is the examination of one member.
type checkup struct {
	member    int
	label     string // the server's name for people
	run       string
	findings  []driver.Finding
	err       error         // why the member takes no part
	remaining time.Duration // of its quarantine
}

// Diagnose implements driver.Diagnoser: it examines all members at once. A problem of one member is
// a warning as long as a majority takes part. Diagnose fails with ErrNoQuorum if no member answers.
func (e *engine) Diagnose(ctx context.Context, req driver.DiagnoseRequest) (driver.Diagnosis, error) {
	if err := e.enter(ctx); err != nil {
		return driver.Diagnosis{}, err
	}
	defer e.running.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h, err := collect(ctx, e, 0, func(_ context.Context, i int) (checkup, error) {
		return e.checkUp(ctx, i, req), nil
	}, nil)
	if err != nil {
		return driver.Diagnosis{}, fmt.Errorf("the checks were cut short: %w", err)
	}
	checkups := h.answers
	slices.SortFunc(checkups, func(a, b checkup) int { return cmp.Compare(a.member, b.member) })
	if err := e.noneAnswers(checkups); err != nil {
		return driver.Diagnosis{}, err
	}
	// First the quorum, then each member.
	var d driver.Diagnosis
	d.Findings = append(d.Findings, e.judgeQuorum(checkups), judgeIndependence(checkups), e.judgeClocks(checkups))
	if req.TTL > e.opts.MaxTTL {
		err := driver.CheckTTL(e.Capabilities(), "TTL", req.TTL)
		d.Findings = append(d.Findings, driver.Finding{Level: driver.Fail, Key: "ttl", Text: err.Error(), Err: err})
	}
	for _, c := range checkups {
		d.Findings = append(d.Findings, c.findings...)
	}
	return d, nil
}

// noneAnswers returns an error if no member has answered.
func (e *engine) noneAnswers(checkups []checkup) error {
	var errs []error
	for _, c := range checkups {
		if len(c.findings) > 0 {
			return nil
		}
		errs = append(errs, c.err)
	}
	return e.missing(errs)
}

// checkUp examines one member. A failure of its store becomes a warning, and the reason why the
// member takes no part.
func (e *engine) checkUp(ctx context.Context, i int, req driver.DiagnoseRequest) checkup {
	m := e.members[i]
	c := checkup{member: i, label: label(m, i)}
	checker, ok := m.(Checker)
	if !ok {
		if _, c.err = m.Inspect(ctx, "holdfast-doctor"); c.err == nil {
			c.findings = []driver.Finding{{Key: "member", Server: c.label, Text: "it answers; nothing else can be checked"}}
		}
		return c
	}
	var d driver.Diagnosis
	if c.run, d, c.err = checker.Check(ctx, driver.DiagnoseRequest{TTL: req.TTL}, e.quarantine()); c.err != nil {
		return c
	}
	for _, f := range d.Findings {
		f.Server = cmp.Or(f.Server, c.label)
		if f.Level == driver.Fail { // of this member; the quorum may work without it
			c.err = cmp.Or(c.err, f.Err)
			f.Level, f.Err = driver.Warn, nil
		}
		if f.Key == "quarantine" {
			c.remaining = f.Measures["remaining"]
		}
		c.findings = append(c.findings, f)
	}
	return c
}

// label returns a name of a member for people.
func label(m driver.Member, i int) string {
	if s, ok := m.(fmt.Stringer); ok && s.String() != "" {
		return s.String()
	}
	return fmt.Sprintf("member %d", i+1)
}

// judgeQuorum counts the members that grant locks. Fewer than a majority is a failure, and fewer
// than all is a warning.
func (e *engine) judgeQuorum(checkups []checkup) driver.Finding {
	var errs []error
	var why []string
	var longest time.Duration
	for _, c := range checkups {
		switch {
		case c.err != nil:
			errs = append(errs, c.err)
			why = append(why, fmt.Sprintf("%s takes no part: %s", c.label, c.err))
		case c.remaining > 0:
			longest = max(longest, c.remaining)
			why = append(why, fmt.Sprintf("%s is in quarantine for another %s", c.label, c.remaining.Round(time.Second)))
		}
	}
	able := len(checkups) - len(why)
	f := driver.Finding{
		Key: "quorum", Counts: map[string]int64{"members": int64(len(checkups)), "able": int64(able)},
		Text: fmt.Sprintf("%d of %d members grant locks, and %d are enough", able, len(checkups), e.quorum),
	}
	switch {
	case len(why) == 0:
		return f
	case able < e.quorum:
		f.Level, f.Err = driver.Fail, missing(errs, e.quorum, len(checkups), longest)
	default:
		f.Level = driver.Warn
	}
	f.Text += ": " + strings.Join(why, "; ")
	return f
}

// judgeIndependence looks for members that are the same store: its loss, or the loss of its memory,
// would count for several.
func judgeIndependence(checkups []checkup) driver.Finding {
	f := driver.Finding{Key: "independence", Text: "the members that answer are servers of their own"}
	for i, c := range checkups {
		same := func(other checkup) bool { return c.run != "" && other.run == c.run }
		if j := slices.IndexFunc(checkups[:i], same); j >= 0 {
			f.Level, f.Err = driver.Fail, fmt.Errorf("%w quorum: %s and %s are one server: use servers of their own, on machines of their own",
				driver.ErrInvalid, checkups[j].label, c.label)
			f.Text = f.Err.Error()
			return f
		}
	}
	return f
}

// judgeClocks compares the members' clocks. It is a failure if no majority would accept the same
// token, and a warning if one clock differs from the others. The offsets were measured over the
// network, so each has the uncertainty of its round trip.
func (e *engine) judgeClocks(checkups []checkup) driver.Finding {
	var clocks []driver.Finding // those that are known
	for _, c := range checkups {
		for _, f := range c.findings {
			if _, known := f.Measures["offset"]; f.Key == "clock" && known {
				clocks = append(clocks, f)
			}
		}
	}
	if len(clocks) < 2 {
		return driver.Finding{Key: "clocks", Level: driver.Warn, Text: "too few clocks can be seen to compare them"}
	}
	slices.SortStableFunc(clocks, func(a, b driver.Finding) int { return cmp.Compare(a.Measures["offset"], b.Measures["offset"]) })
	least, most := clocks[0], clocks[len(clocks)-1]
	apart := most.Measures["offset"] - least.Measures["offset"]
	f := driver.Finding{
		Key: "clocks", Measures: map[string]time.Duration{"apart": apart},
		Text: fmt.Sprintf("at most %s apart", apart.Round(time.Microsecond)),
	}
	uncertainty := most.Measures["uncertainty"] + least.Measures["uncertainty"]
	if !e.agree(clocks, uncertainty) {
		f.Level, f.Err = driver.Fail, fmt.Errorf("%w has clocks within %s of each other: run NTP on all of them", ErrNoQuorum, e.lead())
		f.Text = f.Err.Error()
		return f
	}
	if apart > clockStep+uncertainty {
		f.Level = driver.Warn
		f.Text = fmt.Sprintf("the clock of %s is %s ahead of the clock of %s: a member that is more than a second off is as good as down: run NTP on both",
			most.Server, apart.Round(time.Millisecond), least.Server)
	}
	return f
}

// agree reports whether the clocks of a majority may be close enough for one token. clocks is
// sorted; unknown clocks may have any value.
func (e *engine) agree(clocks []driver.Finding, uncertainty time.Duration) bool {
	need := e.quorum - (len(e.members) - len(clocks))
	for i := 0; i+need-1 < len(clocks); i++ {
		if need <= 1 || clocks[i+need-1].Measures["offset"]-clocks[i].Measures["offset"] <= e.lead()+uncertainty {
			return true
		}
	}
	return false
}

// Leased returns a name of which a member has a lease, if there is one. It fails if it finds none
// and a member does not answer. Use it before Admit: if there is a lease, the quorum is in use.
// Without one the quorum may still be in use, because members may have lost their memory.
func (e *engine) Leased(ctx context.Context) (name string, found bool, err error) {
	h, err := e.lists(ctx, "", nil)
	for _, lock := range slices.Concat(h.answers...) {
		if len(lock.Holders) > 0 {
			return lock.Name, true, nil
		}
	}
	if err == nil && len(h.errs) > 0 {
		err = h.errs[0]
	}
	return "", false, err
}
