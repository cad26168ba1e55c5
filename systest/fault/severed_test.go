package fault_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/quorumlock"
	"github.com/holdfast-locks/holdfast/systest/fault"
)

// TestSeveredQuorum checks that the inner engine may lack any optional method, like a quorum, which
// cannot acquire several locks in one step.
func TestSeveredQuorum(t *testing.T) {
	var members []driver.Member
	for range 3 {
		m := mem.NewMember()
		if err := m.Admit(t.Context()); err != nil {
			t.Fatal(err)
		}
		members = append(members, m)
	}
	quorum, err := quorumlock.New(members, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer quorum.Close()
	severed := fault.Sever(quorum)
	reqs := []driver.AcquireRequest{{Name: "a", LeaseID: lockinfo.NewLeaseID(), TTL: time.Second}}
	if _, err := severed.AcquireAll(t.Context(), reqs); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("AcquireAll = %v, want ErrUnsupported", err)
	}
	client, err := holdfast.New(severed, nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := client.AcquireAll(t.Context(), []string{"a", "b"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := all.Release(t.Context()); err != nil {
		t.Error(err)
	}
	severed.Cut()
	if _, err := client.TryAcquire(t.Context(), "a", nil); !errors.Is(err, driver.ErrUnavailable) {
		t.Errorf("cut off: error %v, want ErrUnavailable", err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

// TestSeveredConforms checks that an engine that is not cut off conforms.
func TestSeveredConforms(t *testing.T) {
	enginetest.Run(t, enginetest.Harness{
		Open:   func(testing.TB) driver.Engine { return closing{fault.Sever(mem.New(nil))} },
		Unit:   time.Second,
		Bubble: synctest.Test,
	})
}

// A closing engine closes its inner engine.
type closing struct{ *fault.Severed }

func (c closing) Close() error { return c.Forward.Close() }
