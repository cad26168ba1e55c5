package quorumlock_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/quorumlock"
)

func TestNewRefuses(t *testing.T) {
	some := members(stores(t, 5))
	tests := []struct {
		name    string
		members []driver.Member
		opts    *quorumlock.Options
		says    string
	}{
		{"none", nil, nil, "0 members"},
		{"one", some[:1], nil, "at least 3"},
		{"two", some[:2], nil, "at least 3"},
		{"four", some[:4], nil, "even number"},
		{"nil", []driver.Member{some[0], nil, some[2]}, nil, "member 2"},
		{"without methods", []driver.Member{some[0], struct{ driver.Member }{some[1]}, some[2]}, nil, "member 2: invalid engine: Capabilities.List is set"},
		{"the same twice", []driver.Member{some[0], some[1], some[0]}, nil, "member 3"},
		{"MaxTTL too short", some[:3], &quorumlock.Options{MaxTTL: time.Millisecond}, "MaxTTL 1ms"},
		{"MaxTTL too long", some[:3], &quorumlock.Options{MaxTTL: 31 * 24 * time.Hour}, "MaxTTL 744h"},
		{"negative Timeout", some[:3], &quorumlock.Options{Timeout: -1}, "Timeout"},
	}
	for _, test := range tests {
		_, err := quorumlock.New(test.members, test.opts)
		if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: error %v, want ErrInvalid that says %q", test.name, err, test.says)
		}
	}
	for _, n := range []int{3, 5} {
		e, err := quorumlock.New(some[:n], nil)
		if err != nil {
			t.Errorf("%d members: %v", n, err)
		} else if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestMaxTTL checks that a TTL longer than the quarantine is refused.
func TestMaxTTL(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		long := ask("a")
		long.TTL = 5*time.Minute + time.Millisecond
		r.fails(long, driver.ErrInvalid)
		long.TTL = 5 * time.Minute
		h := r.grant(long)
		h.TTL++
		if err := r.extend(h); !errors.Is(err, driver.ErrInvalid) {
			r.Errorf("Extend by more than MaxTTL: %v, want ErrInvalid", err)
		}
		err := r.Release(r.Context(), driver.ReleaseRequest{Name: "a", LeaseID: h.LeaseID, KeepFor: 6 * time.Minute})
		if way := r.outcome(ask("a"), driver.Held); err != nil || way.ExpiresIn > 5*time.Minute || way.ExpiresIn < 299*time.Second {
			r.Errorf("Release with KeepFor longer than MaxTTL: %v, and closed for %s; want MaxTTL", err, way.ExpiresIn)
		}
	})
}

// TestListNeedsQuorum checks that a list fails without a majority, because it would be incomplete.
func TestListNeedsQuorum(t *testing.T) {
	some := stores(t, 3)
	e, err := quorumlock.New(members(some), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for i, want := range []error{nil, driver.ErrClosed, driver.ErrClosed} {
		some[i].Close()
		var got error
		for _, err := range e.List(t.Context(), "") {
			got = err
		}
		if !errors.Is(got, want) {
			t.Errorf("List with %d closed members: %v, want %v", i+1, got, want)
		}
	}
}

// A lateLister is a member whose lists are slow, or fail after some time.
type lateLister struct {
	*mem.Member
	takes time.Duration
	err   error
}

func (m *lateLister) List(ctx context.Context, prefix string) iter.Seq2[lockinfo.LockState, error] {
	return driver.Listed(func() ([]lockinfo.LockState, error) {
		select {
		case <-time.After(m.takes):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if m.err != nil {
			return nil, m.err
		}
		var locks []lockinfo.LockState
		for lock := range m.Member.List(ctx, prefix) {
			locks = append(locks, lock)
		}
		return locks, nil
	})
}

// TestListWaitsForNoSilentMember checks that a silent member delays a list only while it may
// complete the majority for a name.
func TestListWaitsForNoSilentMember(t *testing.T) {
	virtual(t, func(t *testing.T) {
		some := stores(t, 3)
		late := &lateLister{Member: some[2], takes: time.Hour}
		e, err := quorumlock.New([]driver.Member{some[0], some[1], late}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		r := &rig{T: t, stores: some, Engine: e}
		list := func(want ...string) (took time.Duration) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			defer synctest.Wait() // for the late member
			began := time.Now()
			var names []string
			for lock, err := range r.List(ctx, "") {
				if err != nil {
					t.Errorf("List: %v", err)
				}
				names = append(names, lock.Name)
			}
			if !slices.Equal(names, want) {
				t.Errorf("List: %q, want %q", names, want)
			}
			return time.Since(began)
		}
		lease := r.take("a")
		settle(0)
		if took := list("a"); took > 100*time.Millisecond {
			t.Errorf("a silent member delays a list by %s", took)
		}
		if _, err := some[0].Withdraw(t.Context(), driver.WithdrawRequest{Name: "a", LeaseID: lease.LeaseID, Released: true}); err != nil {
			t.Fatal(err)
		}
		late.takes = time.Second
		if took := list("a"); took != time.Second {
			t.Errorf("the list took %s; want it to wait for the member that decides", took)
		}
		late.err = errRefused
		list()
	})
}

// TestCloseMembers checks that Close closes the members only if the option is set.
func TestCloseMembers(t *testing.T) {
	for _, closes := range []bool{false, true} {
		some := stores(t, 3)
		e, err := quorumlock.New(members(some), &quorumlock.Options{CloseMembers: closes})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
		for i, m := range some {
			if _, err := m.Inspect(t.Context(), "a"); errors.Is(err, driver.ErrClosed) != closes {
				t.Errorf("CloseMembers %t: member %d says %v", closes, i+1, err)
			}
		}
	}
}

// TestAdmit checks that new members grant nothing during the quarantine unless they are admitted.
func TestAdmit(t *testing.T) {
	newMembers := func() []*mem.Member {
		return []*mem.Member{mem.NewMember(), mem.NewMember(), mem.NewMember()}
	}
	virtual(t, func(t *testing.T) {
		r := newRig(t, newMembers())
		err := r.fails(ask("a"), quorumlock.ErrNoQuorum)
		if !errors.Is(err, driver.ErrUnavailable) || !strings.Contains(err.Error(), "Admit") {
			t.Errorf("error %q, want ErrUnavailable that says what to do", err)
		}
		time.Sleep(5 * time.Minute)
		r.fails(ask("a"), quorumlock.ErrNoQuorum)
		time.Sleep(10 * time.Second)
		r.take("a")

		r = newRig(t, newMembers())
		if err := r.Admit(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.take("a")

		dead := newMembers()
		if err := dead[1].Close(); err != nil {
			t.Fatal(err)
		}
		if err := newRig(t, dead).Admit(t.Context()); !errors.Is(err, driver.ErrClosed) || !strings.Contains(err.Error(), "member 2") {
			t.Errorf("Admit with a closed member: %v", err)
		}
	})
}

// uncomparable is a member for which the operator == panics.
type uncomparable struct {
	plain
	_ []int
}

// TestNewTakesUncomparableMembers checks that members may be values of any type.
func TestNewTakesUncomparableMembers(t *testing.T) {
	var some []driver.Member
	for _, m := range stores(t, 3) {
		some = append(some, uncomparable{plain: plain{m}})
	}
	e, err := quorumlock.New(some, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
