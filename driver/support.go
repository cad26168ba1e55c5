package driver

import "fmt"

// CheckSupport returns an error that wraps ErrUnsupported if req asks for
// something outside c. Engines call it first in Acquire.
func CheckSupport(c Capabilities, req AcquireRequest) error {
	switch {
	case req.Mode == Shared && !c.Shared:
		return fmt.Errorf("shared mode is %w", ErrUnsupported)
	case req.Mode == Semaphore && !c.Semaphore:
		return fmt.Errorf("semaphore mode is %w", ErrUnsupported)
	case req.Queue && !c.Queue:
		return fmt.Errorf("queueing is %w", ErrUnsupported)
	case req.Replicas > 0 && !c.Replicas:
		return fmt.Errorf("waiting for replicas is %w", ErrUnsupported)
	}
	return nil
}
