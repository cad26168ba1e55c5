package systest

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/redislock"
)

// A watched client measures what each script call costs the server.
type watched struct {
	rueidis.Client
	store *store
	t     *testing.T
	mu    sync.Mutex
	most  int             // the most commands inside one call
	calls []time.Duration // how long each took, by the server's slow log
	after func(int)       // runs after each call, with its number
	limit int             // number of calls after which the server is unreachable, unless 0
}

func (w *watched) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !strings.HasPrefix(cmd.Commands()[0], "EVAL") {
		return w.Client.Do(ctx, cmd)
	}
	if w.limit > 0 && len(w.calls) >= w.limit {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		return w.Client.Do(ended, cmd)
	}
	w.store.do(w.t, "CONFIG", "RESETSTAT")
	w.store.do(w.t, "SLOWLOG", "RESET")
	r := w.Client.Do(ctx, cmd)
	if redisErr, ok := rueidis.IsRedisErr(r.Error()); ok && strings.HasPrefix(redisErr.Error(), "NOSCRIPT") {
		return r
	}
	w.most = max(w.most, w.store.inScripts(w.t))
	w.calls = append(w.calls, w.longest())
	if w.after != nil {
		w.after(len(w.calls))
	}
	return r
}

// longest returns how long the longest script has run since the last reset.
func (w *watched) longest() (most time.Duration) {
	entries, err := w.store.do(w.t, "SLOWLOG", "GET", "16").ToArray()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range entries {
		fields, err := e.ToArray()
		if err != nil {
			w.t.Fatal(err)
		}
		words, err := fields[3].AsStrSlice()
		if err != nil {
			w.t.Fatal(err)
		}
		if us, err := fields[2].AsInt64(); err == nil && strings.HasPrefix(words[0], "EVAL") {
			most = max(most, time.Duration(us)*time.Microsecond)
		}
	}
	return most
}

// watch returns an engine whose calls are all watched.
func (s *store) watch(t *testing.T) (*redislock.Engine, *watched) {
	t.Helper()
	s.do(t, "CONFIG", "SET", "slowlog-log-slower-than", "0")
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.server.Addr}, DisableCache: true, ForceSingleClient: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	w := &watched{Client: client, store: s, t: t}
	e, err := redislock.New(w, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e, w
}
