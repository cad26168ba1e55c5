package quorumlock_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/quorumlock"
)

// A rig is an engine in virtual time, with links that the test controls.
type rig struct {
	*testing.T
	*quorumlock.Engine
	stores []*mem.Member
	links  []*link
}

// bubble runs f in virtual time on an engine of n members with default options.
func bubble(t *testing.T, n int, f func(r *rig)) {
	t.Helper()
	virtual(t, func(t *testing.T) { f(newRig(t, stores(t, n))) })
}

// virtual runs f in virtual time.
func virtual(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// newRig returns another engine on the same members.
func newRig(t *testing.T, stores []*mem.Member) *rig {
	t.Helper()
	return newRigWith(t, stores, nil)
}

func newRigWith(t *testing.T, stores []*mem.Member, opts *quorumlock.Options) *rig {
	t.Helper()
	r := &rig{T: t, stores: stores, links: linked(stores)}
	e, err := quorumlock.New(members(r.links), opts)
	if err != nil {
		t.Fatal(err)
	}
	r.Engine = e
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		for _, l := range r.links {
			l.deliver()
		}
		settle(10 * time.Second) // for requests that are still on the links
	})
	return r
}

func (r *rig) another() *rig { return newRig(r.T, r.stores) }

// ttl is the usual TTL of a lease. A tenth of it is the time limit of a member.
const ttl = 10 * time.Second

func ask(name string) driver.AcquireRequest {
	return driver.AcquireRequest{Name: name, LeaseID: lockinfo.NewLeaseID(), TTL: ttl, Holder: lockinfo.Holder{Host: "web-3"}}
}

// outcome makes an attempt that must have the given outcome.
func (r *rig) outcome(req driver.AcquireRequest, want driver.Outcome) driver.AcquireReply {
	r.Helper()
	reply, err := r.Acquire(r.Context(), req)
	if err != nil || reply.Outcome != want {
		r.Fatalf("Acquire: %+v, %v; want outcome %d", reply, err, want)
	}
	return reply
}

// A held is a lease that was granted.
type held struct {
	driver.AcquireRequest
	token uint64
}

// grant makes an attempt that must be granted. As a client does, it draws a new lease ID if the
// first is spent.
func (r *rig) grant(req driver.AcquireRequest) held {
	r.Helper()
	reply, err := r.Acquire(r.Context(), req)
	if err == nil && reply.Outcome == driver.Spent {
		req.LeaseID = lockinfo.NewLeaseID()
		reply, err = r.Acquire(r.Context(), req)
	}
	if err != nil || reply.Outcome != driver.Granted {
		r.Fatalf("Acquire: %+v, %v; want a grant", reply, err)
	}
	return held{req, reply.Token}
}

func (r *rig) take(name string) held {
	r.Helper()
	return r.grant(ask(name))
}

// fails makes an attempt that must fail with an error that wraps want.
func (r *rig) fails(req driver.AcquireRequest, want error) error {
	r.Helper()
	reply, err := r.Acquire(r.Context(), req)
	if !errors.Is(err, want) {
		r.Fatalf("Acquire: %+v, %v; want %v", reply, err, want)
	}
	return err
}

func (r *rig) extend(h held) error {
	return r.Extend(r.Context(), []driver.ExtendRequest{{Name: h.Name, LeaseID: h.LeaseID, TTL: h.TTL}})[0]
}

func (r *rig) release(h held) error {
	return r.Release(r.Context(), driver.ReleaseRequest{Name: h.Name, LeaseID: h.LeaseID})
}

func (r *rig) mustRelease(h held) {
	r.Helper()
	if err := r.release(h); err != nil {
		r.Fatalf("Release: %v", err)
	}
}

// holders returns for each member the token of h, 0 if it has no lease, or 1 if it has another one.
func (r *rig) holders(h held) []uint64 {
	r.Helper()
	has := make([]uint64, len(r.stores))
	for i, s := range r.stores {
		lock, err := s.Inspect(r.Context(), h.Name)
		if err != nil {
			r.Fatal(err)
		}
		for _, holder := range lock.Holders {
			if has[i] = 1; holder.LeaseID == h.LeaseID && !holder.Released {
				has[i] = holder.Token
			}
		}
	}
	return has
}

// free fails the test if a member has a lease of name.
func (r *rig) free(name string) {
	r.Helper()
	for i, s := range r.stores {
		lock, err := s.Inspect(r.Context(), name)
		if err != nil || len(lock.Holders) != 0 {
			r.Errorf("member %d has %+v, %v; want nothing", i+1, lock.Holders, err)
		}
	}
}

// settle waits for all events within d.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
