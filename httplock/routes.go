package httplock

import "sync"

// mostRoutes bounds the memory for routes (INVARIANT I11).
const mostRoutes = 1 << 14

// routes has the routes of names, learned from replies of the server.
type routes struct {
	mu sync.RWMutex // guards of
	of map[string]uint32
}

// Route implements driver.Router. Unknown names have route 0: the server splits a batch of
// them and answers with their routes.
func (e *engine) Route(name string) uint32 {
	e.routes.mu.RLock()
	defer e.routes.mu.RUnlock()
	return e.routes.of[name]
}

// learn remembers the route of a name.
func (r *routes) learn(name string, route uint32) {
	r.mu.RLock()
	known, ok := r.of[name]
	r.mu.RUnlock()
	if ok && known == route {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !ok && len(r.of) >= mostRoutes {
		for other := range r.of { // any one
			delete(r.of, other)
			break
		}
	}
	r.of[name] = route
}

// learnEach remembers the route of one name of a batch, if the reply has routes.
func (r *routes) learnEach(name string, all []uint32, i int) {
	if i < len(all) {
		r.learn(name, all[i])
	}
}
