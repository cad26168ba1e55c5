package testsvc

import "time"

// WatchPauses begins to watch for pauses of this process. pause ends that, and returns the longest
// time for which the process did not run.
func WatchPauses() (pause func() time.Duration) {
	const tick = time.Millisecond
	stop, worst := make(chan struct{}), make(chan time.Duration)
	go func() { // ends when pause is called, which each caller does once
		longest := time.Duration(0)
		for {
			began := time.Now()
			select {
			case <-time.After(tick):
				longest = max(longest, time.Since(began)-tick)
			case <-stop:
				worst <- longest
				return
			}
		}
	}()
	return func() time.Duration {
		close(stop)
		return <-worst
	}
}
