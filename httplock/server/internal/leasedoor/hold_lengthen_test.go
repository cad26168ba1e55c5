package leasedoor_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/wire"
)

// TestHoldIsLengthened checks that a hold is lengthened by its token, is never shortened, and keeps
// its reason. A repeat changes nothing.
func TestHoldIsLengthened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, mem.New(nil))
		h := s.freezes(key, freeze)
		time.Sleep(47 * time.Hour)
		longer := wire.HoldRequest{ForMS: (8 * time.Hour).Milliseconds(), Reason: "the fix takes longer", FencingToken: h.FencingToken}
		for range 2 {
			var got wire.Hold
			w := s.do(http.StatusOK, "POST", holdPath, "", longer, &got)
			if got != (wire.Hold{Name: "deploy", Mode: "exclusive", Token: h.Token, ForMS: longer.ForMS, ExpiresInMS: longer.ForMS}) || w.Header().Get("Fencing-Token") != h.FencingTokenStr {
				t.Errorf("%+v, %s", got, w.Header())
			}
		}
		time.Sleep(2 * time.Hour)
		longer.ForMS = time.Hour.Milliseconds()
		var got wire.Hold
		if s.do(http.StatusOK, "POST", holdPath, "", longer, &got); got.ExpiresInMS != (6 * time.Hour).Milliseconds() {
			t.Errorf("after a shorter one: %+v", got)
		}
		if lock := s.looked(); len(lock.Holders) != 1 || *lock.Holders[0].ExpiresInMS != (6*time.Hour).Milliseconds() || lock.Holders[0].Reason != freeze.Reason {
			t.Errorf("%+v", lock)
		}
		for _, bad := range []wire.HoldRequest{
			{ForMS: 0, Reason: "r", FencingToken: h.FencingToken}, {ForMS: 60_000, FencingToken: h.FencingToken},
			{ForMS: 60_000, Reason: "a\x00b", FencingToken: h.FencingToken}, {ForMS: 60_000, Reason: "r", FencingToken: driver.MaxToken + 1},
			{ForMS: 60_000, Reason: "r", FencingToken: h.FencingToken, Mode: "shared"}, {ForMS: 60_000, Reason: "r", FencingToken: h.FencingToken, Limit: 2, Permits: 1},
		} {
			s.refused(http.StatusBadRequest, "invalid", "POST", holdPath, "", bad)
		}
		longer.FencingToken++
		s.refused(http.StatusGone, "not-held", "POST", holdPath, "", longer)
		time.Sleep(6 * time.Hour)
		longer.FencingToken--
		s.refused(http.StatusGone, "not-held", "POST", holdPath, "", longer)
		if s.looked().Held {
			t.Error("a hold that has ended is held again")
		}
	})
}

// TestWhoLengthensWhat checks that another person's hold can be lengthened only with the right to
// break, and a process's lease not at all.
func TestWhoLengthensWhat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := openWith(t, mem.New(nil), server.Options{
			Logger:  slog.New(slog.NewTextHandler(&log, nil)),
			Callers: people{"ann": caller.Acquire, "bob": caller.Acquire, "boss": caller.Acquire | caller.Break, "ops": caller.All},
		})
		h := s.as("ann").freezes(key, freeze)
		longer := wire.HoldRequest{ForMS: (72 * time.Hour).Milliseconds(), Reason: "the audit goes on", FencingToken: h.FencingToken}
		s.as("bob").refused(http.StatusForbidden, "not-permitted", "POST", holdPath, "", longer)
		if *s.as("ops").looked().Holders[0].ExpiresInMS != freeze.ForMS {
			t.Error("a refused request has lengthened the hold")
		}
		s.as("boss").do(http.StatusOK, "POST", holdPath, "", longer, nil)
		if !strings.Contains(log.String(), "lengthened_to=72h0m0s") || !strings.Contains(log.String(), longer.Reason) {
			t.Errorf("the log: %s", &log)
		}
		s.as("ann").do(http.StatusNoContent, "POST", releasePath, "", wire.HoldRelease{FencingToken: h.FencingToken}, nil)
		longer.FencingToken = s.as("ann").lease("deploy", otherKey, wire.LeaseRequest{}).FencingToken
		for _, who := range []string{"ann", "ops"} {
			s.as(who).refused(http.StatusConflict, "not-a-person", "POST", holdPath, "", longer)
		}
	})
}

// TestHiddenHoldIsNotLengthened checks that lengthening a hold is unsupported on a store that hides
// lease IDs.
func TestHiddenHoldIsNotLengthened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openPeople(t, hidden{driver.Forward{Engine: mem.New(nil)}}, io.Discard)
		longer := freeze
		longer.FencingToken = s.as("ann").freezes(key, freeze).FencingToken
		s.as("ann").refused(http.StatusNotImplemented, "unsupported", "POST", holdPath, "", longer)
	})
}
