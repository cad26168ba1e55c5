package httplock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/quorumlock"
)

// harness returns the suite's access to in-memory stores, in virtual time. In front of each store
// stands the chain of servers.
func harness(store func() driver.Engine, chain ...string) enginetest.Harness {
	type opened struct {
		*network
		last string
	}
	networks := map[driver.Engine]opened{}
	return enginetest.Harness{
		Open: func(tb testing.TB) driver.Engine {
			n, e := &network{}, store()
			tb.Cleanup(func() { _ = e.Close() })
			for _, name := range chain {
				n.with(tb, name, e, nil)
				e = n.open(tb, name)
			}
			networks[e] = opened{n, chain[len(chain)-1]}
			return e
		},
		Join: func(tb testing.TB, e driver.Engine) driver.Engine {
			o := networks[e]
			return o.open(tb, o.last)
		},
		Unit:   time.Second,
		Bubble: synctest.Test,
	}
}

func inMemory() driver.Engine { return mem.New(&mem.Options{History: true}) }

func TestConformance(t *testing.T) { enginetest.Run(t, harness(inMemory, first)) }

// TestConformanceOfChain runs the suite through a server whose store is another server.
func TestConformanceOfChain(t *testing.T) { enginetest.Run(t, harness(inMemory, first, second)) }

// TestConformanceOfQuorum runs the suite on a quorum, through two servers.
func TestConformanceOfQuorum(t *testing.T) {
	type opened struct {
		*network
		members []driver.Member
	}
	opens := map[driver.Engine]opened{}
	serve := func(tb testing.TB, o opened, name string) driver.Engine {
		quorum, err := quorumlock.New(o.members, &quorumlock.Options{MaxTTL: 30 * 24 * time.Hour})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = quorum.Close() })
		o.with(tb, name, quorum, nil)
		return o.open(tb, name)
	}
	enginetest.Run(t, enginetest.Harness{
		Open: func(tb testing.TB) driver.Engine {
			o := opened{network: &network{}}
			for range 3 {
				m := mem.NewMember()
				if err := m.Admit(tb.Context()); err != nil {
					tb.Fatal(err)
				}
				o.members = append(o.members, m)
			}
			e := serve(tb, o, first)
			opens[e] = o
			return e
		},
		Join:   func(tb testing.TB, e driver.Engine) driver.Engine { return serve(tb, opens[e], second) },
		Unit:   time.Second,
		Bubble: synctest.Test,
	})
}

// TestConformanceWithoutFlags runs the requirements about each flag of the capabilities with the
// flag switched off in the server's store.
func TestConformanceWithoutFlags(t *testing.T) {
	var with map[string]bool
	synctest.Test(t, func(t *testing.T) { with = enginetest.Applicable(t, harness(inMemory, first)) })
	for flag, only := range enginetest.Flags {
		h := harness(func() driver.Engine { return &driver.Forward{Engine: inMemory(), Without: only} }, first)
		t.Run(flag, func(t *testing.T) {
			var without map[string]bool
			synctest.Test(t, func(t *testing.T) { without = enginetest.Applicable(t, h) })
			for _, r := range enginetest.Requirements() {
				if without[r.Name] && (!with[r.Name] || r.Name == "ImplementsCapabilities") {
					synctest.Test(t, func(t *testing.T) { r.Check(t, h) })
				}
			}
		})
	}
}
