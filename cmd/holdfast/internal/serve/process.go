package serve

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// A reading is something that the system knows of this process.
type reading struct {
	name, help string
	value      float64
}

// ofProcess returns what Linux tells in /proc, under the names that Prometheus has for
// it. Elsewhere there is none.
func ofProcess() (all []reading) {
	if fds, err := os.ReadDir("/proc/self/fd"); err == nil {
		all = append(all, reading{"process_open_fds", "Descriptors that the process has open: one for each connection, and a few.", float64(len(fds) - 1)}) // without that of ReadDir
	}
	limits, _ := os.ReadFile("/proc/self/limits") // what is not there is not told
	for line := range bytes.Lines(limits) {
		if rest, found := strings.CutPrefix(string(line), "Max open files"); found {
			if soft, err := strconv.ParseFloat(first(rest), 64); err == nil {
				all = append(all, reading{"process_max_fds", "Descriptors that it may have open.", soft})
			}
		}
	}
	memory, _ := os.ReadFile("/proc/self/statm")
	if _, rest, found := strings.Cut(string(memory), " "); found {
		if pages, err := strconv.ParseFloat(first(rest), 64); err == nil {
			all = append(all, reading{"process_resident_memory_bytes", "Memory of the process that is in use.", pages * float64(os.Getpagesize())})
		}
	}
	return all
}

// first returns the first word of text, or nothing.
func first(text string) string {
	word, _, _ := strings.Cut(strings.TrimLeft(text, " "), " ")
	return word
}
