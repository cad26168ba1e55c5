package systest

import (
	"slices"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/goredislock"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore"
	"github.com/holdfast-locks/holdfast/redislock"
)

// inDatabase returns an engine in a database of a server for each way to open one.
func inDatabase(t *testing.T, server *testsvc.Server, path string, number int) map[string]*rediscore.Engine {
	t.Helper()
	own, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{server.Addr}, SelectDB: number, DisableCache: true, DisableRetry: true, AlwaysPipelining: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Close)
	program := goredis.NewClient(&goredis.Options{Addr: server.Addr, DB: number})
	t.Cleanup(func() { _ = program.Close() })
	ofProgram, err := goredislock.New(program, &goredislock.Options{History: true})
	if err != nil {
		t.Fatal(err)
	}
	ofRueidis, err := redislock.New(own, &redislock.Options{History: true, Database: number})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*rediscore.Engine{
		"URL":     drivertest.Open(t, redislock.Open, server.URL+path+"?history=1").Engine,
		"rueidis": ofRueidis.Engine,
		"goredis": ofProgram.Engine,
	}
	for _, e := range all {
		t.Cleanup(func() { _ = e.Close() })
	}
	return all
}

// A listener records the notices of names and of losses that engines report.
type listener struct {
	mu     sync.Mutex
	gaps   int
	names  []string
	losses []string
}

func (l *listener) to(t *testing.T, engines map[string]*rediscore.Engine) *listener {
	for way, e := range engines {
		t.Cleanup(e.OnEvent(func(event lockinfo.HistoryEvent) {
			l.mu.Lock()
			defer l.mu.Unlock()
			if event.Kind == lockinfo.HistoryGap {
				l.gaps++
			} else {
				l.names = append(l.names, way+" "+event.Name)
			}
		}))
		t.Cleanup(e.OnLoss(func(loss driver.Loss) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.losses = append(l.losses, way+" "+loss.Name)
		}))
	}
	drivertest.Eventually(t, "the engines listen", func() bool { return l.count(&l.gaps) == len(engines) })
	return l
}

func (l *listener) count(n *int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return *n
}

// timesOf counts how often each text is in the list.
func timesOf(mu *sync.Mutex, list *[]string) map[string]int {
	mu.Lock()
	defer mu.Unlock()
	all := map[string]int{}
	for _, text := range *list {
		all[text]++
	}
	return all
}

// TestDatabasesAreApart checks that notices stay in their database, although a server has one set
// of channels for all. Nothing is reported in another database, not even for the same lease ID, and
// all engines in one database receive each other's notices, whichever client they use.
func TestDatabasesAreApart(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	first, third := inDatabase(t, server, "", 0), inDatabase(t, server, "/3", 3)
	near, far := (&listener{}).to(t, first), (&listener{}).to(t, third)

	// The same lease ID in both databases; the lease in one of them is broken.
	req := drivertest.Request("same", time.Minute)
	for _, engines := range []map[string]*rediscore.Engine{first, third} {
		for _, e := range engines {
			listening(t, e) // to their own inboxes and the common channel
		}
		drivertest.Granted(t, engines["URL"], req)
	}
	token := func(e *rediscore.Engine) uint64 {
		lock, err := e.Inspect(t.Context(), "same")
		if err != nil || len(lock.Holders) != 1 {
			t.Fatal(lock, err)
		}
		return lock.Holders[0].Token
	}
	broke, err := first["goredis"].Break(t.Context(), driver.BreakRequest{ID: lockinfo.NewLeaseID(), Name: "same", Token: token(first["URL"]), Author: "ada"})
	if err != nil || len(broke) != 1 {
		t.Fatal(broke, err)
	}
	for _, e := range first {
		drivertest.Cycle(t, e, "near")
	}
	for _, e := range third {
		drivertest.Cycle(t, e, "far")
	}

	// Each event is reported in its own database: three pairs, to three engines.
	for way := range first {
		drivertest.Eventually(t, way+" hears what happens in its database", func() bool {
			return timesOf(&near.mu, &near.names)[way+" near"] == 6 && timesOf(&far.mu, &far.names)[way+" far"] == 6 &&
				timesOf(&near.mu, &near.losses)[way+" same"] == 1
		})
	}
	near.mu.Lock()
	defer near.mu.Unlock()
	far.mu.Lock()
	defer far.mu.Unlock()
	for way := range first {
		if slices.Contains(near.names, way+" far") || slices.Contains(far.names, way+" near") {
			t.Errorf("%s hears what happens in the other database", way)
		}
	}
	if len(far.losses) != 0 {
		t.Errorf("%q are told of a break in the other database", far.losses)
	}
}
