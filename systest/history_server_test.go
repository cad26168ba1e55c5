package systest

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/systest/model/lease"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

// TestHistoryThroughServers checks histories of clients that reach the store through two servers.
// Replies of both servers are lost, and replies of the store to them. On every second name all
// clients wait. INVARIANT I1, I2, I5, I6, I7.
func TestHistoryThroughServers(t *testing.T) {
	s := newStore(t)
	lost := &losses{}
	resets := &losses{}
	urls := make([]string, 2)
	for i := range urls {
		p := faultproxy.New(t, s.server.Addr)
		p.OnRequest(resets.resetSome)
		urls[i] = newServer(t, "redis://"+p.Addr(), lost.lossy)
	}
	// Each client knows both servers, and starts with a different one.
	both := func(i int) string { return urls[i] + "," + strings.TrimPrefix(urls[1-i], "http://") }
	job := traffic.Job{Servers: []string{both(0), both(1)}, Waits: true}
	r := runHistoryOn(t, s.engine, job, nil, soak.For(4*time.Second, time.Minute), func(*historyRun) {})
	r.lost = lost
	v := r.history.Check(t, lease.Model{Mode: lease.Fenced, Linger: traffic.LocksLinger})
	accepted, refused := r.resource.Log.Check(t)
	stuck := r.checkStuck(t)
	turns, mixed, wrong := r.checkTurns(t)
	report.Row(t, "two servers between 32 clients and the store, 8 names; 10 % of the servers' answers lost (cut, reset, held back), and one in 400 of the store's, with the connection that all share",
		"0 illegal histories, 0 waiters served before one that was queued earlier, 0 names stuck more than 100 ms after their last holder",
		"%s: %s; of %d neighbours in a queue %d out of turn, %d of them at different servers; %s; the store's: %s; resource: %d writes, %d stale ones refused; %s",
		r.took, v, turns, wrong, mixed, r.lost, resets, accepted, refused, stuck)
}

// newServer starts a server on the store at a URL, and returns the server's URL. around wraps its
// handler.
func newServer(t *testing.T, store string, around func(http.Handler) http.Handler) string {
	t.Helper()
	s, err := server.New(openEngine(t, store), nil)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(around(s))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
		s.Close(t.Context())
	})
	return front.URL
}

// lossy loses the replies to ten percent of the requests that engines send. Each request is
// executed; then its reply is cut in half, reset, or withheld until the client has given up.
func (l *losses) lossy(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Replies about capabilities and the stream of news are not lost.
		if strings.HasSuffix(r.URL.Path, "/news") || strings.HasSuffix(r.URL.Path, "/capabilities") {
			next.ServeHTTP(w, r)
			return
		}
		l.asked.Add(1)
		if rand.IntN(100) >= 10 {
			next.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		switch rand.IntN(3) {
		case 0:
			l.dropped.Add(1)
			w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
			w.WriteHeader(answer.Code)
			_, _ = w.Write(answer.Body.Bytes()[:answer.Body.Len()/2])
		case 1:
			l.reset.Add(1)
		case 2:
			l.swallowed.Add(1)
			<-r.Context().Done()
		}
		panic(http.ErrAbortHandler)
	})
}

// resetSome resets the connection that many clients of a server share, after the request was
// executed.
func (l *losses) resetSome(q faultproxy.Request) (a faultproxy.Action) {
	l.asked.Add(1)
	if rand.IntN(400) == 0 {
		l.reset.Add(1)
		a.Reply = faultproxy.Reset
	}
	return a
}
