//go:build !linux

package holdfast

import "time"

// systemBootClock returns noBootClock: the standard library offers no clock
// here that counts while the machine is suspended. After a suspension only the
// store (Lease.Verify) and the fencing token tell.
func systemBootClock() func() time.Duration { return noBootClock }
