package sim

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
	"github.com/holdfast-locks/holdfast/redislock"
)

// TestServerConforms runs the conformance suite on the real engine with the server in memory, in
// virtual time. It shows that the server behaves like Redis in all that locks need.
func TestServerConforms(t *testing.T) {
	scripts := NewScripts()
	stores := map[driver.Engine]*network{}
	open := func(t testing.TB, n *network) driver.Engine {
		h := &host{name: "conformance", net: n}
		engine, shut, err := h.open()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(shut)
		e := &closing{engine, shut}
		stores[e] = n
		return e
	}
	enginetest.Run(t, enginetest.Harness{
		Open: func(t testing.TB) driver.Engine {
			return open(t, newNetwork(newServer(scripts), 1, func(string, ...any) {}))
		},
		Join:   func(t testing.TB, e driver.Engine) driver.Engine { return open(t, stores[e]) },
		Unit:   400 * time.Millisecond,
		Bubble: func(t *testing.T, f func(*testing.T)) { synctest.Test(t, f) },
	})
}

// closing is an engine that also closes its client.
type closing struct {
	*redislock.Engine
	shut func()
}

func (c *closing) Close() error {
	c.shut()
	return nil
}
