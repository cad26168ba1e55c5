package serve

import (
	"net/http"
	"sync"
)

// Traffic waits for the requests that were begun before the server drained: each of them has
// locked it for reading.
type traffic struct{ sync.RWMutex }

// count counts the requests of h. While the server drains they end the connection.
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

// drain returns a channel that is closed when all requests are answered that were begun
// before. It may be called once.
func (t *traffic) drain() <-chan struct{} {
	over := make(chan struct{})
	go func() { // ends with the last of them
		t.Lock()
		close(over)
	}()
	return over
}
