package holdfast_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/memlock"
)

// A traced engine is what a wrapper looks like that loses the methods of what it
// wraps.
type traced struct{ driver.Engine }

// TestNewRefusesWrapperWithoutMethods: a wrapper that embeds only driver.Engine
// shows flags for which it has no methods. Waiters would poll and do-once work
// would be refused later, and nobody would know why.
func TestNewRefusesWrapperWithoutMethods(t *testing.T) {
	store := memlock.New()
	const says = "holdfast: new client: invalid engine: Capabilities.Queue is set, but *holdfast_test.traced lacks " +
		"Watch and Refresh of driver.Queuer: a wrapper must hand them on, as driver.Forward does"
	c, err := holdfast.New(&traced{store}, nil)
	if c != nil || !errors.Is(err, holdfast.ErrInvalid) || err.Error() != says {
		t.Errorf("New = %v, %v\nwant ErrInvalid: %s", c, err, says)
	}
	// Nor does a Forward around it hide that.
	if _, err := holdfast.New(driver.Forward{Engine: &traced{store}}, nil); err == nil || !strings.Contains(err.Error(), "traced") {
		t.Errorf("behind Forward: error %v, want one that names the wrapper", err)
	}
	if _, err := holdfast.New(driver.Forward{Engine: store}, nil); err != nil {
		t.Errorf("on Forward: %v", err)
	}
}

// An unrecorded engine has the methods of a driver.Recorder without the flag.
type unrecorded struct{ *faulty }

func (unrecorded) Capabilities() driver.Capabilities { return driver.Capabilities{Queue: true} }

// TestOnceNeedsRecords: the flag decides whether there can be do-once work, and
// that before the work starts.
func TestOnceNeedsRecords(t *testing.T) {
	engine := newFaulty()
	c := newClient(t, unrecorded{engine}, nil)
	_, err := c.Once(t.Context(), "a", nil, func(context.Context, *holdfast.Lease) ([]byte, error) {
		t.Error("the work was started")
		return nil, nil
	})
	wantErr(t, err, holdfast.ErrUnsupported)
	if n := engine.count("acquire"); n != 0 {
		t.Errorf("%d acquires, want none", n)
	}
}
