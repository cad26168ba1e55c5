package driver

import (
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// CheckSupport returns an error that wraps ErrUnsupported if req needs
// something outside c, or ErrInvalid if its mode is invalid or if its TTL is longer
// than c allows. Engines call it first in Acquire.
func CheckSupport(c Capabilities, req AcquireRequest) error {
	if err := req.Mode.Check(); err != nil {
		return err
	}
	switch {
	case req.Mode == lockinfo.Shared && !c.Shared:
		return fmt.Errorf("shared mode is %w", ErrUnsupported)
	case req.Mode.Limit() != 0 && !c.Semaphore:
		return fmt.Errorf("semaphore mode is %w", ErrUnsupported)
	case req.Queue && !c.Queue:
		return fmt.Errorf("queueing is %w", ErrUnsupported)
	case req.Replicas > 0 && !c.Replicas:
		return fmt.Errorf("waiting for replicas is %w", ErrUnsupported)
	case req.Once && !c.Records:
		return fmt.Errorf("do-once work is %w", ErrUnsupported)
	}
	return CheckTTL(c, "TTL", req.TTL)
}

// CheckTTL returns an error that wraps ErrInvalid if d is longer than c allows.
// The error calls d what.
func CheckTTL(c Capabilities, what string, d time.Duration) error {
	if c.MaxTTL > 0 && d > c.MaxTTL {
		return fmt.Errorf("%w %s %s: the longest of this store is %s", ErrInvalid, what, d, c.MaxTTL)
	}
	return nil
}
