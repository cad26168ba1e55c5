package serve

import (
	"net/http"
	"sync"
)

// Traffic knows whether requests are at work that were begun before the server drained.
type traffic struct {
	mu       sync.Mutex
	begun    int
	draining bool
	over     chan struct{} // closed when draining and begun is 0; made by drain
}

// count counts the requests of h. While the server drains they end the connection.
func (t *traffic) count(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !t.begin() {
			w.Header().Set("Connection", "close")
			h.ServeHTTP(w, r)
			return
		}
		defer t.end()
		h.ServeHTTP(w, r)
	})
}

// begin notes a request, unless the server drains.
func (t *traffic) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.draining {
		return false
	}
	t.begun++
	return true
}

func (t *traffic) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun--
	t.tell()
}

// drain returns a channel that is closed when all requests are answered that were begun
// before. It may be called once.
func (t *traffic) drain() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.draining, t.over = true, make(chan struct{})
	t.tell()
	return t.over
}

// tell closes over when its time has come, once: begun does not grow any more.
func (t *traffic) tell() {
	if t.draining && t.begun == 0 {
		close(t.over)
	}
}
