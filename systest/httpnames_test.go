package systest

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// TestNamesThroughServers checks that several names are acquired together or not at all, and that a
// repeat at the other server returns the same leases. A key that is repeated with other names is
// refused. A downgrade can be repeated as well.
func TestNamesThroughServers(t *testing.T) {
	s := newStore(t)
	plain := func(h http.Handler) http.Handler { return h }
	urls := []string{newServer(t, s.server.URL, plain), newServer(t, s.server.URL, plain)}
	at := func(i int) *httpCaller {
		return &httpCaller{T: t, urls: urls[i : i+1], client: http.DefaultClient, repeats: new(atomic.Int64)}
	}
	key := string(lockinfo.NewLeaseID())
	req := wire.LeaseRequest{Names: []string{"b", "a", "c"}, TTLMS: 60_000, LockDelayMS: 1_000}
	var first, again wire.Leases
	if status, _ := at(0).ask("/v1/leases", key, req, &first); status != http.StatusCreated || len(first.Leases) != 3 {
		t.Fatalf("%d %+v", status, first)
	}
	if status, _ := at(1).ask("/v1/leases", key, req, &again); status != http.StatusOK || len(again.Leases) != 3 {
		t.Fatalf("repeated: %d %+v", status, again)
	}
	for i, l := range again.Leases {
		if f := first.Leases[i]; l.Name != req.Names[i] || l.LeaseID != f.LeaseID || l.Token != f.Token || !l.Repeated {
			t.Errorf("repeated: %+v, want the lease %+v", l, f)
		}
	}
	var p wire.Problem
	for _, names := range [][]string{{"a", "x"}, {"a", "b"}} {
		if status, _ := at(1).ask("/v1/leases", key, wire.LeaseRequest{Names: names, LockDelayMS: 1_000}, &p); status != http.StatusUnprocessableEntity {
			t.Errorf("%q: %d %+v", names, status, p)
		}
	}
	if status, _ := at(1).ask("/v1/leases", string(lockinfo.NewLeaseID()), wire.LeaseRequest{Names: []string{"x", "c"}}, &p); status != http.StatusConflict {
		t.Errorf("a name that is held: %d %+v", status, p)
	}
	var x wire.Lease
	if status, _ := at(0).ask("/v1/leases", "", wire.LeaseRequest{Name: "x"}, &x); status != http.StatusCreated {
		t.Errorf("the name that nobody may have: %d", status)
	}
	a := wire.LeaseRef{Name: "a", LeaseID: first.Leases[1].LeaseID, FencingToken: first.Leases[1].FencingToken}
	for i := range urls {
		var down wire.Downgraded
		if status, _ := at(i).ask("/v1/leases/downgrade", "", a, &down); status != http.StatusOK || down.Mode != "shared" || down.Token != first.Leases[1].Token || down.ExpiresInMS > 60_000 || down.ExpiresInMS < 30_000 {
			t.Errorf("made shared: %d %+v", status, down)
		}
	}
	var results wire.LeaseResults
	var refs wire.LeaseRefs
	for _, l := range first.Leases {
		refs.Leases = append(refs.Leases, wire.LeaseRef{Name: l.Name, LeaseID: l.LeaseID})
	}
	if status, _ := at(1).ask("/v1/leases/release", "", refs, &results); status != http.StatusOK || results.Leases[0].Status != 204 || results.Leases[1].Status != 204 || results.Leases[2].Status != 204 {
		t.Errorf("released: %d %+v", status, results)
	}
}
