//go:build unix

package serve

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// writeUsage writes what the process uses of its host. Memory and descriptors are known on
// Linux only.
func writeUsage(p *page) {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) == nil {
		p.counter("process_cpu_seconds_total", "Processor time of the process, in user and kernel mode.",
			time.Duration(usage.Utime.Nano()+usage.Stime.Nano()).Seconds())
	}
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) == nil {
		p.gauge("process_max_fds", "File descriptors that the process may have.", float64(files.Cur))
	}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		p.gauge("process_open_fds", "File descriptors that the process has.", float64(len(open)-1)) // one is the open directory
	}
	var virtual, resident float64 // pages
	text, _ := os.ReadFile("/proc/self/statm")
	if n, _ := fmt.Sscan(string(text), &virtual, &resident); n == 2 {
		size := float64(os.Getpagesize())
		p.gauge("process_virtual_memory_bytes", "Virtual memory of the process.", virtual*size)
		p.gauge("process_resident_memory_bytes", "Resident memory of the process.", resident*size)
	}
}
