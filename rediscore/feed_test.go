package rediscore

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A crier is a Redis Cluster whose servers send a message before the engine listens to all of them,
// and another one afterwards.
type crier struct {
	parrot
	later func()
}

func (c *crier) Mode() Mode                                { return InCluster }
func (c *crier) Nodes() map[string]Conn                    { return map[string]Conn{"a:1": c} }
func (c *crier) Dedicate(context.Context) (Session, error) { return &cry{of: c}, nil }

type cry struct {
	Session
	of *crier
}

func (s *cry) Subscribe(_ context.Context, onMessage func(channel, message string), channels ...string) (<-chan error, error) {
	if len(channels) == 2 {
		say := func(name string) {
			onMessage(channels[0], fmt.Sprintf("%s\t1700000000000000\ta1700000000000000 1 0 0 0 0 {}", name))
		}
		say("early")
		s.of.later = func() { say("later") }
	}
	return make(chan error), nil
}

func (s *cry) Close() {}

// TestFeedBeginsWithAGap checks that a message sent before the engine listens to all servers is
// dropped: the gap at the beginning includes it.
func TestFeedBeginsWithAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &crier{}
		e, err := New(conn, &Options{History: true})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		var seen []string
		stop := e.OnEvent(func(event lockinfo.HistoryEvent) { seen = append(seen, event.Kind.String()+" "+event.Name) })
		defer stop()
		synctest.Wait()
		conn.later()
		synctest.Wait()
		if got, want := fmt.Sprint(seen), "[gap  acquired later]"; got != want {
			t.Errorf("the feed has %s, want %s", got, want)
		}
	})
}
