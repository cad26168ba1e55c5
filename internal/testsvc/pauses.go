package testsvc

import "time"

// WatchPauses returns a function that returns for how long this process did not
// run at the worst, from now until it is called.
func WatchPauses() (pause func() time.Duration) {
	const tick = time.Millisecond
	stop, worst := make(chan struct{}), make(chan time.Duration)
	go func() { // ends with pause, which each caller calls once
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
