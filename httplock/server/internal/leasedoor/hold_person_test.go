package leasedoor_test

import (
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/memlock"
	"github.com/holdfast-locks/holdfast/wire"
)

const (
	holdPath    = "/v1/locks/deploy/hold"
	releasePath = holdPath + "/release"
)

// freeze is a hold of two days.
var freeze = wire.HoldRequest{ForMS: (48 * time.Hour).Milliseconds(), Reason: "freeze: release 1.4"}

// freezes holds the lock deploy as a person.
func (s *site) freezes(key string, want wire.HoldRequest) (h wire.Hold) {
	s.Helper()
	w := s.do(http.StatusCreated, "POST", holdPath, key, want, &h)
	if got := w.Header().Get("Fencing-Token"); h.FencingToken == 0 || got != strconv.FormatUint(h.FencingToken, 10) || got != h.FencingTokenStr {
		s.Errorf("the token is %d, %q, and %q in the header", h.FencingToken, h.FencingTokenStr, got)
	}
	return h
}

// looked returns the lock deploy.
func (s *site) looked() (lock wire.LockDetails) {
	s.Helper()
	s.do(http.StatusOK, "GET", "/v1/locks/deploy", "", nil, &lock)
	return lock
}

// What a person holds lasts for as long as was said: nobody renews it, and it is given back
// by its token.
func TestPersonHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memlock.New())
		h := s.freezes(key, freeze)
		if h != (wire.Hold{Name: "deploy", Mode: "exclusive", Token: h.Token, ForMS: freeze.ForMS, ExpiresInMS: freeze.ForMS}) {
			t.Errorf("%+v", h)
		}
		time.Sleep(47 * time.Hour)
		lock := s.looked()
		if len(lock.Holders) != 1 || lock.QueueLength != 0 {
			t.Fatalf("%+v", lock)
		}
		who := lock.Holders[0]
		if !who.Person || who.User != "anonymous" || who.PID != 0 || who.Reason != freeze.Reason || who.FencingToken != h.FencingToken || *who.ExpiresInMS != time.Hour.Milliseconds() {
			t.Errorf("%+v", who)
		}
		p := s.refused(http.StatusConflict, "lock-held", "POST", "/v1/leases", otherKey, wire.LeaseRequest{Name: "deploy"})
		if len(p.Holders) != 1 || !p.Holders[0].Person {
			t.Errorf("%+v", p)
		}
		s.do(http.StatusNoContent, "POST", releasePath, "", wire.HoldRelease{FencingToken: h.FencingToken}, nil)
		if s.looked().Held {
			t.Error("it is held after its release")
		}
		s.refused(http.StatusGone, "not-held", "POST", releasePath, "", wire.HoldRelease{FencingToken: h.FencingToken + 1})
		again := s.freezes(otherKey, freeze)
		if again.FencingToken <= h.FencingToken {
			t.Errorf("token %d after %d", again.FencingToken, h.FencingToken)
		}
		time.Sleep(48*time.Hour + time.Second)
		if s.looked().Held {
			t.Error("it is held for longer than was said")
		}
	})
}
