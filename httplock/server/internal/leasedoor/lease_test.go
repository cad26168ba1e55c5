package leasedoor_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/wire"
)

const key, otherKey = "key-0123456789abcdef", "other-0123456789abcd"

func ref(l wire.Lease) wire.LeaseRefs {
	return wire.LeaseRefs{LeaseRef: wire.LeaseRef{Name: l.Name, LeaseID: l.LeaseID}}
}

// TestRenewAndCheck checks that a lease lasts from renewal to renewal, that a check does not
// lengthen it, and that any server can serve both.
func TestRenewAndCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		a, b := open(t, engine), open(t, engine)
		l := a.lease("n", key, wire.LeaseRequest{TTLMS: 10_000})
		time.Sleep(9 * time.Second)
		var renewed wire.Renewed
		renew := ref(l)
		renew.TTLMS = 20_000
		b.do(http.StatusOK, "POST", "/v1/leases/renew", "", renew, &renewed)
		if renewed.Token == nil || *renewed.Token != l.Token {
			t.Errorf("renewed: the token is %v, want %v", renewed.Token, l.Token)
		}
		renewed.Token = nil
		if want := (wire.Renewed{Name: "n", TTLMS: 20_000, ExpiresInMS: 20_000}); renewed != want {
			t.Errorf("renewed: %+v, want %+v", renewed, want)
		}
		time.Sleep(20*time.Second - time.Millisecond)
		a.do(http.StatusNoContent, "POST", "/v1/leases/check", "", ref(l), nil)
		time.Sleep(10 * time.Millisecond)
		a.refused(http.StatusGone, "lost", "POST", "/v1/leases/check", "", ref(l))
		a.refused(http.StatusGone, "lost", "POST", "/v1/leases/renew", "", renew)
		a.refused(http.StatusGone, "lost", "POST", "/v1/leases/release", "", ref(l))
	})
}

// TestReleaseLeavesATombstone checks that the next holder acquires a released lock at once, and
// that the key of the released lease is refused for a minute.
func TestReleaseLeavesATombstone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		a, b := open(t, engine), open(t, engine)
		l := a.lease("n", key, wire.LeaseRequest{})
		b.do(http.StatusNoContent, "POST", "/v1/leases/release", "", ref(l), nil)
		next := b.lease("n", otherKey, wire.LeaseRequest{})
		if next.FencingToken <= l.FencingToken || next.LeaseID == l.LeaseID {
			t.Errorf("after %+v the next has %+v", l, next)
		}
		a.refused(http.StatusGone, "released", "POST", "/v1/leases", key, wire.LeaseRequest{Name: "n"})
		b.do(http.StatusNoContent, "POST", "/v1/leases/release", "", ref(next), nil)
		time.Sleep(59 * time.Second)
		a.refused(http.StatusGone, "released", "POST", "/v1/leases", key, wire.LeaseRequest{Name: "n"})
		a.refused(http.StatusGone, "released", "POST", "/v1/leases", key, wire.LeaseRequest{Name: "n", WaitMS: 1000})
	})
}

// TestSeveralLeases checks that a request for several leases has a result for each.
func TestSeveralLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, mem.New(nil))
		l, m := s.lease("n", key, wire.LeaseRequest{}), s.lease("m", key, wire.LeaseRequest{})
		all := wire.LeaseRefs{Leases: []wire.LeaseRef{
			{Name: "n", LeaseID: l.LeaseID}, {Name: "n", LeaseID: m.LeaseID}, {Name: "m", LeaseID: m.LeaseID},
		}}
		for path, well := range map[string]int{"renew": 200, "check": 204, "release": 204} {
			if path == "release" {
				continue
			}
			s.results(path, all, well, http.StatusGone, well)
		}
		s.results("release", all, 204, http.StatusGone, 204)
		s.results("renew", all, http.StatusGone, http.StatusGone, http.StatusGone)
	})
}

func (s *site) results(path string, refs wire.LeaseRefs, want ...int) {
	s.Helper()
	var got wire.LeaseResults
	s.do(http.StatusOK, "POST", "/v1/leases/"+path, "", refs, &got)
	for i, r := range got.Leases {
		if r.Name != refs.Leases[i].Name || r.LeaseID != refs.Leases[i].LeaseID || r.Status != want[i] || (r.Code == "lost") != (want[i] == http.StatusGone) ||
			(r.ExpiresInMS != nil) != (want[i] == http.StatusOK) {
			s.Errorf("%s: answer %d is %+v, want the status %d", path, i, r, want[i])
		}
	}
	if len(got.Leases) != len(want) {
		s.Errorf("%s: %d answers, want %d", path, len(got.Leases), len(want))
	}
}

// TestMinHold checks that the minimum hold time applies when another server releases the lease.
func TestMinHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		a, b := open(t, engine), open(t, engine)
		l := a.lease("n", key, wire.LeaseRequest{MinHoldMS: 5_000, Labels: map[string]string{"shop": "7"}})
		time.Sleep(2 * time.Second)
		b.do(http.StatusNoContent, "POST", "/v1/leases/release", "", ref(l), nil)
		time.Sleep(3*time.Second - time.Millisecond)
		p := b.refused(http.StatusConflict, "lock-held", "POST", "/v1/leases", otherKey, wire.LeaseRequest{Name: "n"})
		if len(p.Holders) != 1 || !p.Holders[0].Released || p.Holders[0].Labels["shop"] != "7" {
			t.Errorf("in the way is %+v", p.Holders)
		}
		time.Sleep(time.Millisecond)
		b.lease("n", otherKey, wire.LeaseRequest{})
	})
}

// TestReleaseByKey checks that a client that has received no reply can release the lock by its key,
// and that a pending request with this key then acquires nothing.
func TestReleaseByKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		a, b := open(t, engine), open(t, engine)
		for name, req := range map[string]wire.LeaseRequest{"n": {}, "m": {MinHoldMS: 1000}} {
			l := a.lease(name, key, req)
			b.do(http.StatusNoContent, "POST", "/v1/leases/release", key, wire.LeaseRefs{LeaseRef: wire.LeaseRef{Name: name}}, nil)
			a.refused(http.StatusGone, "lost", "POST", "/v1/leases/check", "", ref(l))
			req.Name = name
			a.refused(http.StatusGone, "released", "POST", "/v1/leases", key, req)
		}
		b.do(http.StatusNoContent, "POST", "/v1/leases/release", otherKey, wire.LeaseRefs{LeaseRef: wire.LeaseRef{Name: "n"}}, nil)
		a.refused(http.StatusGone, "released", "POST", "/v1/leases", otherKey, wire.LeaseRequest{Name: "n"})
	})
}
