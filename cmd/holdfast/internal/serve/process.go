package serve

import (
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"time"
)

// writeProcess writes the metrics that every Go server exports about itself, under their usual
// names.
func writeProcess(p *page, started time.Time) {
	p.head("go_info", "gauge", "1, with the version of Go.")
	p.sample("go_info", labels("version", runtime.Version()), 1)
	p.gauge("go_goroutines", "Goroutines of the process.", float64(runtime.NumGoroutine()))
	p.gauge("go_threads", "Threads that the process has created.", float64(pprof.Lookup("threadcreate").Count()))
	writePauses(p)
	writeMemory(p)
	p.gauge("process_start_time_seconds", "When the process started, in seconds since 1970.", seconds(started))
	writeUsage(p)
}

// writePauses writes for how long the garbage collector has paused the process.
func writePauses(p *page) {
	const name = "go_gc_duration_seconds"
	gc := debug.GCStats{PauseQuantiles: make([]time.Duration, 5)}
	debug.ReadGCStats(&gc)
	p.head(name, "summary", "Pauses of the garbage collector.")
	for i, pause := range gc.PauseQuantiles {
		p.sample(name, labels("quantile", number(float64(i)/4)), pause.Seconds())
	}
	p.sample(name+"_sum", "", gc.PauseTotal.Seconds())
	p.sample(name+"_count", "", float64(gc.NumGC))
}

func writeMemory(p *page) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	const prefix = "go_memstats_"
	p.counter(prefix+"alloc_bytes_total", "Bytes of all objects that were allocated.", float64(m.TotalAlloc))
	p.counter(prefix+"mallocs_total", "Objects that were allocated.", float64(m.Mallocs))
	p.counter(prefix+"frees_total", "Objects that were freed.", float64(m.Frees))
	p.gauge(prefix+"alloc_bytes", "Bytes of objects that are not freed.", float64(m.Alloc))
	p.gauge(prefix+"heap_alloc_bytes", "Bytes of objects that are not freed.", float64(m.HeapAlloc))
	p.gauge(prefix+"heap_objects", "Objects that are not freed.", float64(m.HeapObjects))
	p.gauge(prefix+"heap_inuse_bytes", "Bytes of the heap that is in use.", float64(m.HeapInuse))
	p.gauge(prefix+"heap_idle_bytes", "Bytes of the heap that is not in use.", float64(m.HeapIdle))
	p.gauge(prefix+"heap_released_bytes", "Bytes of the heap that were returned to the system.", float64(m.HeapReleased))
	p.gauge(prefix+"heap_sys_bytes", "Bytes of the heap, from the system.", float64(m.HeapSys))
	p.gauge(prefix+"stack_inuse_bytes", "Bytes of stacks.", float64(m.StackInuse))
	p.gauge(prefix+"sys_bytes", "Bytes from the system, for all purposes.", float64(m.Sys))
	p.gauge(prefix+"next_gc_bytes", "Size of the heap at which the next garbage collection begins.", float64(m.NextGC))
	p.gauge(prefix+"last_gc_time_seconds", "When the last garbage collection ended, in seconds since 1970.", float64(m.LastGC)/1e9)
}

// seconds returns t in seconds since 1970.
func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }
