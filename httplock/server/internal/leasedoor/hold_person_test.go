package leasedoor_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/internal/hook"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

const (
	holdPath    = "/v1/locks/deploy/hold"
	releasePath = holdPath + "/release"
)

// freeze is a hold of two days.
var freeze = wire.HoldRequest{ForMS: (48 * time.Hour).Milliseconds(), Reason: "freeze: release 1.4"}

// freezes acquires the lock deploy as a person.
func (s *site) freezes(key string, want wire.HoldRequest) (h wire.Hold) {
	s.Helper()
	w := s.do(http.StatusCreated, "POST", holdPath, key, want, &h)
	if got := w.Header().Get("Fencing-Token"); h.FencingToken == 0 || got != strconv.FormatUint(h.FencingToken, 10) || got != h.FencingTokenStr {
		s.Errorf("the token is %d, %q, and %q in the header", h.FencingToken, h.FencingTokenStr, got)
	}
	return h
}

// looked returns the state of the lock deploy.
func (s *site) looked() (lock wire.LockDetails) {
	s.Helper()
	s.do(http.StatusOK, "GET", "/v1/locks/deploy", "", nil, &lock)
	return lock
}

// TestPersonHolds checks that a person's hold lasts as long as requested without renewals, and that
// its token releases it.
func TestPersonHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, mem.New(nil))
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

// TestPersonHoldsOnce checks that a repeat with the same key gets the same hold and token. After
// the release the key is refused.
func TestPersonHoldsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		s, elsewhere := open(t, engine), open(t, engine)
		h := s.freezes(key, freeze)
		var again wire.Hold
		elsewhere.do(http.StatusOK, "POST", holdPath, key, freeze, &again)
		if !again.Repeated || again.Token != h.Token || again.ExpiresInMS != h.ExpiresInMS {
			t.Errorf("%+v, and again %+v", h, again)
		}
		shared := freeze
		shared.Mode = "shared"
		s.refused(http.StatusUnprocessableEntity, "key-reused", "POST", holdPath, key, shared)
		p := s.refused(http.StatusConflict, "lock-held", "POST", holdPath, otherKey, freeze)
		if !strings.Contains(p.Detail, `hold "deploy": held by anonymous (a person)`) {
			t.Errorf("%s", p.Detail)
		}
		if lock := s.looked(); len(lock.Holders) != 1 || lock.QueueLength != 0 {
			t.Errorf("%+v", lock)
		}
		elsewhere.do(http.StatusNoContent, "POST", releasePath, "", wire.HoldRelease{FencingToken: h.FencingToken}, nil)
		s.refused(http.StatusGone, "released", "POST", holdPath, key, freeze)
	})
}

// TestBadHolds checks that a wrong request for a hold is refused with the reason, and that nothing
// is held.
func TestBadHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, short{driver.Forward{Engine: mem.New(nil)}})
		for _, c := range []struct {
			want wire.HoldRequest
			says string
		}{
			{wire.HoldRequest{Reason: "r"}, "for_ms: want 10 to 300000"},
			{wire.HoldRequest{ForMS: -1, Reason: "r"}, "for_ms"},
			{wire.HoldRequest{ForMS: 9, Reason: "r"}, "for_ms"},
			{wire.HoldRequest{ForMS: 300_001, Reason: "r"}, "this store keeps no lease for longer than 5m"},
			{wire.HoldRequest{ForMS: math.MaxInt64, Reason: "r"}, "for_ms"},
			{wire.HoldRequest{ForMS: 60_000}, "say why"},
			{wire.HoldRequest{ForMS: 60_000, Reason: " \t "}, "say why"},
			{wire.HoldRequest{ForMS: 60_000, Reason: "a\x00b"}, "control characters"},
			{wire.HoldRequest{ForMS: 60_000, Reason: strings.Repeat("x", 8<<10)}, "reason and labels"},
			{wire.HoldRequest{ForMS: 60_000, Reason: "r", Mode: "write"}, "mode"},
			{wire.HoldRequest{ForMS: 60_000, Reason: "r", Mode: "semaphore"}, "limit 0: want 1 to 1000000"},
			{wire.HoldRequest{ForMS: 60_000, Reason: "r", Limit: 2}, "limit 2, permits 0: only mode semaphore has them"},
		} {
			if p := s.refused(http.StatusBadRequest, "invalid", "POST", holdPath, key, c.want); !strings.Contains(p.Detail, c.says) {
				t.Errorf("%+v: %s, want %q", c.want, p.Detail, c.says)
			}
		}
		s.refused(http.StatusBadRequest, "key-invalid", "POST", holdPath, "", wire.HoldRequest{ForMS: 60_000, Reason: "r"})
		s.refused(http.StatusBadRequest, "invalid", "POST", releasePath, "", wire.HoldRelease{})
		s.refused(http.StatusBadRequest, "invalid", "POST", releasePath, "", wire.HoldRelease{FencingToken: driver.MaxToken + 1})
		s.refused(http.StatusBadRequest, "invalid", "POST", releasePath, "", wire.HoldRelease{FencingToken: 1, Reason: "\x00"})
		if lock := s.looked(); len(lock.Holders) > 0 {
			t.Errorf("%+v", lock)
		}
		s.server.Drain()
		s.refused(http.StatusServiceUnavailable, "draining", "POST", holdPath, key, wire.HoldRequest{ForMS: 60_000, Reason: "r"})
	})
}

// short is a store whose leases last five minutes at most, as those of a quorum do.
type short struct{ driver.Forward }

func (e short) Capabilities() driver.Capabilities {
	c := e.Forward.Capabilities()
	c.MaxTTL = 5 * time.Minute
	return c
}

// TestPersonReleasesWhileDraining checks that a draining server still releases the holds of people.
func TestPersonReleasesWhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, mem.New(nil))
		h := s.freezes(key, freeze)
		s.server.Drain()
		s.do(http.StatusNoContent, "POST", releasePath, "", wire.HoldRelease{FencingToken: h.FencingToken}, nil)
	})
}

// people are callers with some of the rights. Each sends its name as the token.
type people map[string]caller.Rights

func (all people) Identify(r *http.Request) (*caller.Caller, error) {
	name := r.Header.Get("Authorization")
	return &caller.Caller{Name: name, Rights: all[name]}, nil
}

// as returns s for requests of the given person.
func (s *site) as(name string) *site {
	they := *s
	they.header = http.Header{"Authorization": {name}}
	return &they
}

// openPeople returns a server with several people as callers.
func openPeople(t *testing.T, engine driver.Engine, log io.Writer) *site {
	t.Helper()
	return openWith(t, engine, server.Options{
		Logger: slog.New(slog.NewTextHandler(log, nil)),
		Callers: people{
			"ann": caller.Acquire, "bob": caller.Acquire, "boss": caller.Break, "reader": caller.Read, "ops": caller.All,
		},
	})
}

// TestWhoGivesBackWhat checks the rights to release a hold: acquire for your own, and break for
// another person's. The history and the log show such a break.
func TestWhoGivesBackWhat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		engine := mem.New(&mem.Options{History: true})
		s := openPeople(t, engine, &log)
		h := s.as("ann").freezes(key, freeze)
		ref := wire.HoldRelease{FencingToken: h.FencingToken, Reason: "the release is out"}
		s.as("reader").refused(http.StatusForbidden, "not-permitted", "POST", releasePath, "", ref)
		s.as("bob").refused(http.StatusForbidden, "not-permitted", "POST", releasePath, "", ref)
		if lock := s.as("ops").looked(); !lock.Held {
			t.Fatal("it was given back by somebody who may not")
		}
		s.as("boss").do(http.StatusNoContent, "POST", releasePath, "", ref, nil)
		s.as("boss").do(http.StatusNoContent, "POST", releasePath, "", ref, nil) // the reply was lost
		s.as("ann").refused(http.StatusGone, "not-held", "POST", releasePath, "", ref)
		lock := s.as("ops").looked()
		if lock.Held || len(lock.Broken) != 1 || lock.Broken[0].Author != "boss" || lock.Broken[0].Reason != ref.Reason || !lock.Broken[0].Holder.Person {
			t.Errorf("%+v", lock)
		}

		ref.FencingToken = s.as("ann").freezes(otherKey, freeze).FencingToken
		s.as("ann").do(http.StatusNoContent, "POST", releasePath, "", ref, nil)
		s.as("ann").do(http.StatusNoContent, "POST", releasePath, "", ref, nil) // likewise
		s.as("boss").refused(http.StatusGone, "not-held", "POST", releasePath, "", ref)
		events, err := engine.History(t.Context(), "deploy")
		if last := events[len(events)-1]; err != nil || last.Kind != lockinfo.HistoryReleased || last.Token != ref.FencingToken {
			t.Errorf("%+v, %v", last, err)
		}
		for _, line := range []string{"what=hold caller=ann", `reason="freeze: release 1.4"`, "for=48h0m0s", "what=break caller=boss", "what=release caller=ann"} {
			if !strings.Contains(log.String(), line) {
				t.Errorf("%s is not in the log:\n%s", line, &log)
			}
		}
		if n := strings.Count(log.String(), "what=break"); n != 1 {
			t.Errorf("%d breaks in the log, want 1", n)
		}
	})
}

// TestOnlyPeopleGiveBack checks that a release of a hold does not release a process's lease. For a
// hold that was not acquired through a server, a release needs the right to break.
func TestOnlyPeopleGiveBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		s := openPeople(t, engine, io.Discard)
		l := s.as("ann").lease("deploy", key, wire.LeaseRequest{})
		for _, who := range []string{"ann", "boss", "ops"} {
			p := s.as(who).refused(http.StatusConflict, "not-a-person", "POST", releasePath, "", wire.HoldRelease{FencingToken: l.FencingToken})
			if !strings.Contains(p.Detail, "ann has it, which is not a person") {
				t.Error(p.Detail)
			}
		}
		s.as("ann").do(http.StatusNoContent, "POST", "/v1/leases/release", "", wire.LeaseRef{Name: "deploy", LeaseID: l.LeaseID}, nil)

		reply, err := engine.Acquire(t.Context(), driver.AcquireRequest{
			Name: "deploy", LeaseID: lockinfo.NewLeaseID(), TTL: time.Hour, Holder: lockinfo.Holder{User: "ann", Host: "laptop", Person: true, Caller: "ann"},
		})
		if err != nil {
			t.Fatal(err)
		}
		ref := wire.HoldRelease{FencingToken: reply.Token}
		s.as("ann").refused(http.StatusForbidden, "not-permitted", "POST", releasePath, "", ref)
		s.as("ops").do(http.StatusNoContent, "POST", releasePath, "", ref, nil)
	})
}

// TestPersonReleasesOnOtherStores checks that on a store that cannot break locks only the holder
// can release a hold. A lost reply to a release leaves the outcome unknown, and a repeat finds it
// out.
func TestPersonReleasesOnOtherStores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := mem.New(&mem.Options{History: true})
		fail := ""
		engine := &hook.Engine{
			Forward: driver.Forward{Engine: memory, Without: driver.Capabilities{Break: true}},
			Each: func(_ context.Context, req hook.Request, send func() error) error {
				if req.Method == fail {
					_ = send()
					return errors.New("reset")
				}
				return send()
			},
		}
		s := openPeople(t, engine, io.Discard)
		ref := wire.HoldRelease{FencingToken: s.as("ann").freezes(key, freeze).FencingToken}
		s.as("ops").refused(http.StatusNotImplemented, "unsupported", "POST", releasePath, "", ref)
		fail = "Inspect"
		s.as("ann").refused(http.StatusServiceUnavailable, "store-unavailable", "POST", releasePath, "", ref)
		fail = "Release"
		s.as("ann").refused(http.StatusGatewayTimeout, "outcome-unknown", "POST", releasePath, "", ref)
		fail = ""
		s.as("ann").do(http.StatusNoContent, "POST", releasePath, "", ref, nil)
		if s.as("ops").looked().Held {
			t.Error("it is held")
		}
	})
}

// hidden hides lease IDs, as a server does from a caller without the admin right.
type hidden struct{ driver.Forward }

func (e hidden) Inspect(ctx context.Context, name string) (lockinfo.LockState, error) {
	lock, err := e.Forward.Inspect(ctx, name)
	for i := range lock.Holders {
		lock.Holders[i].LeaseID = lock.Holders[i].LeaseID.Hidden()
	}
	return lock, err
}

// TestPersonReleasesByToken checks that on a store that hides lease IDs, as another server does,
// the token selects the hold that a release ends.
func TestPersonReleasesByToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openPeople(t, hidden{driver.Forward{Engine: mem.New(nil)}}, io.Discard)
		ref := wire.HoldRelease{FencingToken: s.as("ann").freezes(key, freeze).FencingToken}
		for range 2 {
			s.as("ann").do(http.StatusNoContent, "POST", releasePath, "", ref, nil)
		}
		if lock := s.as("ops").looked(); lock.Held || len(lock.Broken) != 1 || lock.Broken[0].Author != "ann" {
			t.Errorf("%+v", lock)
		}
		without := driver.Forward{Engine: mem.New(nil), Without: driver.Capabilities{Break: true}}
		s = openPeople(t, hidden{without}, io.Discard)
		ref.FencingToken = s.as("ann").freezes(key, freeze).FencingToken
		s.as("ann").refused(http.StatusNotImplemented, "unsupported", "POST", releasePath, "", ref)
	})
}
