//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/wire"
)

// TestServeFindsTheDead checks that the history reports the end of a killed run's lease within the
// TTL and 15 s, although no client uses its name. The same is true for leases that a Redis server
// loses with all its data.
func TestServeFindsTheDead(t *testing.T) {
	testsvc.Long(t)
	t.Parallel()
	redis := testsvc.Redis(t)
	store := redis.URL + "?history=1"
	s := serve(t, store)
	answer, err := http.Get(s.urls[0] + "/v1/events")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	events := make(chan wire.HistoryEvent, 100)
	go func() {
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var e wire.HistoryEvent
				if err := json.Unmarshal([]byte(text), &e); err != nil {
					t.Error(err)
				}
				events <- e
			}
		}
	}()
	await := func(event, name string) wire.HistoryEvent {
		t.Helper()
		for limit := time.After(15*time.Second + patience); ; {
			select {
			case e := <-events:
				if e.Event == event && e.Name == name {
					return e
				}
			case <-limit:
				t.Fatalf("no %s of %s", event, name)
			}
		}
	}
	const ttl = 2 * time.Second
	killed := func(name string) time.Time {
		p := start(t, store, "run", "--ttl", ttl.String(), name, "--", "sleep", "60")
		await("acquired", name)
		p.signal(syscall.SIGKILL)
		return time.Now()
	}
	at := killed("dead")
	e := await("expired", "dead")
	if ended := time.Now().Add(-time.Duration(*e.AgoMS) * time.Millisecond); ended.Before(at.Add(-time.Second)) || ended.After(at.Add(ttl+time.Second)) {
		t.Errorf("its lease ended %s after it was killed, by the history", ended.Sub(at))
	}
	killed("lost")
	redis.Restart() // empty
	await("expired", "lost")
}
