package sqlitelock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-locks/holdfast/driver"
)

// systemClock returns the clock of this host. CLOCK_BOOTTIME cannot be set
// and counts while the machine is suspended.
func systemClock() (clock, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return clock{}, fmt.Errorf("the boot ID is %w: leases need /proc: %w", driver.ErrUnsupported, err)
	}
	offsets, err := os.ReadFile("/proc/self/timens_offsets")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return clock{}, fmt.Errorf("the offset of the boot-time clock is %w: %w", driver.ErrUnsupported, err)
	}
	offset, err := bootOffset(string(offsets))
	if err != nil {
		return clock{}, err
	}
	return bootClock(strings.TrimSpace(string(id)), unix.CLOCK_BOOTTIME, offset)
}

// bootOffset returns the offset that the time namespace of this process adds to the boot-time
// clock, from the text of /proc/self/timens_offsets. A container may have such an offset and share
// its locks with processes that have none. The text is empty on a kernel without time namespaces.
func bootOffset(offsets string) (time.Duration, error) {
	for line := range strings.Lines(offsets) {
		var id string
		var sec, nsec int64
		if n, err := fmt.Sscan(line, &id, &sec, &nsec); n != 3 {
			return 0, fmt.Errorf("the time namespace is %w: line %q: %w", driver.ErrUnsupported, line, err)
		}
		if id == "boottime" {
			return time.Duration(sec)*time.Second + time.Duration(nsec), nil
		}
	}
	return 0, nil
}
