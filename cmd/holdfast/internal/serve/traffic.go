package serve

import (
	"net/http"
	"sync"
)

// A traffic waits for the requests that began before the server drained. Each of them has locked
// it for reading.
type traffic struct{ sync.RWMutex }

// count returns h with its requests counted. While the server drains, their responses close the
// connection.
func (t *traffic) count(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if t.TryRLock() { // unless drain has begun
			defer t.RUnlock()
		} else {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

// drain returns a channel that is closed when all requests that began before are answered. It may
// be called once.
func (t *traffic) drain() <-chan struct{} {
	over := make(chan struct{})
	go func() { // ends with the last of them
		t.Lock()
		close(over)
	}()
	return over
}
