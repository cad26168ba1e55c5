package leasedoor_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/wire"
)

// TestRepeatAtAnotherServer checks that a repeated request at another server gets the same lease ID
// and token, for the whole TTL.
func TestRepeatAtAnotherServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		a, b := open(t, engine), open(t, engine)
		first := a.lease("orders/42", "key-0123456789abcdef", wire.LeaseRequest{TTLMS: 10_000})
		time.Sleep(9 * time.Second)
		var again wire.Lease
		b.do(http.StatusOK, "POST", "/v1/leases", "key-0123456789abcdef", wire.LeaseRequest{Name: "orders/42", TTLMS: 10_000}, &again)
		if again.LeaseID != first.LeaseID || again.Token != first.Token || again.ExpiresInMS != 10_000 {
			t.Errorf("the repeat is answered %+v, the first %+v", again, first)
		}
		b.refused(409, "lock-held", "POST", "/v1/leases", "key-other-0123456789", wire.LeaseRequest{Name: "orders/42"})
	})
}
