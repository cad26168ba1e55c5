package quorumlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/quorumlock"
)

// A patient is a member whose Check returns what the test has set.
type patient struct {
	plain
	name     string
	run      string
	findings []driver.Finding
	err      error
	asked    driver.DiagnoseRequest
	limit    time.Duration
}

func (p *patient) String() string { return p.name }

func (p *patient) Check(_ context.Context, req driver.DiagnoseRequest, quarantine time.Duration) (string, driver.Diagnosis, error) {
	p.asked, p.limit = req, quarantine
	return p.run, driver.Diagnosis{Findings: p.findings}, p.err
}

// well returns the findings of a member without problems.
func well(offset time.Duration) []driver.Finding {
	return []driver.Finding{
		{Key: "quarantine", Measures: map[string]time.Duration{"remaining": 0}},
		{Key: "clock", Server: "here", Measures: map[string]time.Duration{"offset": offset, "uncertainty": time.Millisecond}},
	}
}

// ward returns patients without problems, and an engine on them.
func ward(t *testing.T) ([]*patient, *quorumlock.Engine) {
	t.Helper()
	var patients []*patient
	var all []driver.Member
	for i, m := range members(stores(t, 3)) {
		p := &patient{plain: plain{m}, name: fmt.Sprintf("s%d", i+1), run: fmt.Sprintf("run%d", i+1), findings: well(0)}
		patients, all = append(patients, p), append(all, p)
	}
	e, err := quorumlock.New(all, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return patients, e
}

func TestDiagnose(t *testing.T) {
	fail := func(err error) []driver.Finding {
		return append(well(0), driver.Finding{Level: driver.Fail, Key: "rights", Text: "rights are missing", Err: err})
	}
	quarantined := func() []driver.Finding {
		f := well(0)
		f[0].Level, f[0].Measures["remaining"] = driver.Warn, time.Minute
		return f
	}
	down := fmt.Errorf("%w: refused", driver.ErrUnavailable)
	for _, c := range []struct {
		name   string
		change func(p []*patient)
		key    string
		level  driver.Level
		err    error
		says   string
	}{
		{"all well", func([]*patient) {}, "quorum", driver.OK, nil, "3 of 3 members grant locks, and 2 are enough"},
		{"one down", func(p []*patient) { p[1].err = down }, "quorum", driver.Warn, nil, "2 of 3 members grant locks, and 2 are enough: s2 takes no part: "},
		{"two down", func(p []*patient) { p[0].err, p[2].err = down, down }, "quorum", driver.Fail, quorumlock.ErrNoQuorum, "1 of 3"},
		{"one without rights", func(p []*patient) { p[0].findings = fail(driver.ErrPermission) }, "quorum", driver.Warn, nil, "s1 takes no part"},
		{"its finding", func(p []*patient) { p[0].findings = fail(driver.ErrPermission) }, "rights", driver.Warn, nil, "missing"},
		{
			"two without rights", func(p []*patient) {
				p[0].findings, p[1].findings = fail(driver.ErrPermission), fail(driver.ErrPermission)
			},
			"quorum", driver.Fail, driver.ErrPermission, "s2 takes no part",
		},
		{"one in quarantine", func(p []*patient) { p[2].findings = quarantined() }, "quorum", driver.Warn, nil, "s3 is in quarantine for another 1m0s"},
		{
			"two in quarantine", func(p []*patient) { p[1].findings, p[2].findings = quarantined(), quarantined() },
			"quorum", driver.Fail, quorumlock.ErrNoQuorum, "1 of 3",
		},
		{
			"one down, one in quarantine", func(p []*patient) { p[0].err, p[2].findings = down, quarantined() },
			"quorum", driver.Fail, quorumlock.ErrNoQuorum, "1 of 3",
		},
		{"independent", func([]*patient) {}, "independence", driver.OK, nil, "of their own"},
		{"runs unknown", func(p []*patient) { p[0].run, p[1].run = "", "" }, "independence", driver.OK, nil, ""},
		{"one server twice", func(p []*patient) { p[2].run = "run1" }, "independence", driver.Fail, driver.ErrInvalid, "s1 and s3 are one server"},
		{"clocks that agree", func([]*patient) {}, "clocks", driver.OK, nil, "at most 0s apart"},
		{"clocks", func(p []*patient) { p[1].findings = well(102 * time.Millisecond) }, "clocks", driver.OK, nil, "102ms apart"},
		{
			"clocks apart", func(p []*patient) { p[1].findings = well(-103 * time.Millisecond) }, "clocks", driver.Warn, nil, "103ms ahead of the clock of here",
		},
		{"one clock far off", func(p []*patient) { p[1].findings = well(-time.Hour) }, "clocks", driver.Warn, nil, "1h0m0s ahead"},
		{
			"no two clocks near each other",
			func(p []*patient) { p[1].findings, p[2].findings = well(-3*time.Minute), well(3*time.Minute) },
			"clocks", driver.Fail, quorumlock.ErrNoQuorum, "within 2m30s",
		},
		{
			"two clocks apart, and one that cannot be seen",
			func(p []*patient) { p[1].findings, p[2].findings = well(-3*time.Minute), nil },
			"clocks", driver.Warn, nil, "3m0s ahead",
		},
		{"one clock", func(p []*patient) { p[1].findings, p[2].findings = nil, nil }, "clocks", driver.Warn, nil, "too few"},
	} {
		t.Run(c.name, func(t *testing.T) {
			patients, e := ward(t)
			c.change(patients)
			d, err := e.Diagnose(t.Context(), driver.DiagnoseRequest{TTL: time.Minute, URL: "quorum+redis://a,b,c"})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range d.Findings {
				if f.Key == c.key {
					if f.Level != c.level || !strings.Contains(f.Text, c.says) || !errors.Is(f.Err, c.err) {
						t.Errorf("%+v; want %s, %v, %q", f, c.level, c.err, c.says)
					}
					return
				}
			}
			t.Errorf("no finding %s in %+v", c.key, d.Findings)
		})
	}
}

// TestDiagnoseRequests checks that members get the quorum's TTL and quarantine, and not its URL.
func TestDiagnoseRequests(t *testing.T) {
	patients, e := ward(t)
	d, err := e.Diagnose(t.Context(), driver.DiagnoseRequest{TTL: 7 * time.Minute, URL: "quorum+redis://a,b,c"})
	if err != nil || d.Worst() != driver.Fail {
		t.Errorf("a TTL above MaxTTL: %+v, %v", d, err)
	}
	for _, p := range patients {
		if p.asked != (driver.DiagnoseRequest{TTL: 7 * time.Minute}) || p.limit <= 5*time.Minute || p.limit > 6*time.Minute {
			t.Errorf("%s was asked %+v with a quarantine of %s", p.name, p.asked, p.limit)
		}
		p.err, p.findings = driver.ErrUnavailable, nil
	}
	if _, err := e.Diagnose(t.Context(), driver.DiagnoseRequest{TTL: time.Minute}); !errors.Is(err, quorumlock.ErrNoQuorum) {
		t.Errorf("none answers: %v, want ErrNoQuorum", err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if _, err := e.Diagnose(t.Context(), driver.DiagnoseRequest{TTL: time.Minute}); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
}

// TestDiagnosePlainMembers checks members that cannot examine their stores: the report contains
// whether they answer.
func TestDiagnosePlainMembers(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		r.links[2].set(down)
		d, err := r.Diagnose(r.Context(), driver.DiagnoseRequest{TTL: time.Minute})
		if err != nil || d.Findings[0].Counts["able"] != 2 || d.Worst() != driver.Warn {
			r.Errorf("%+v, %v", d, err)
		}
	})
}

// TestLeased checks that a lease on any one member prevents Admit.
func TestLeased(t *testing.T) {
	all := stores(t, 3)
	e, err := quorumlock.New(members(all), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	if name, found, err := e.Leased(t.Context()); found || err != nil {
		t.Errorf("an unused quorum: %q, %t, %v", name, found, err)
	}
	req := ask("a")
	if reply, err := all[2].Engine().Acquire(t.Context(), req); err != nil || reply.Outcome != driver.Granted {
		t.Fatalf("%+v, %v", reply, err)
	}
	if name, found, err := e.Leased(t.Context()); !found || name != "a" || err != nil {
		t.Errorf("with a lease on one member: %q, %t, %v", name, found, err)
	}
	if err := all[2].Engine().Release(t.Context(), driver.ReleaseRequest{Name: "a", LeaseID: req.LeaseID}); err != nil {
		t.Fatal(err)
	}
	if name, found, err := e.Leased(t.Context()); found || err != nil {
		t.Errorf("after the release: %q, %t, %v", name, found, err)
	}
	_ = all[1].Close()
	if _, _, err := e.Leased(t.Context()); err == nil {
		t.Error("a member does not answer, and Leased says nothing")
	}
}
