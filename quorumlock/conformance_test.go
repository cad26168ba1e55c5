package quorumlock_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/quorumlock"
)

// stores returns n new members that are not in quarantine.
func stores(tb testing.TB, n int) []*mem.Member {
	tb.Helper()
	var members []*mem.Member
	for range n {
		m := mem.NewMember()
		if err := m.Admit(tb.Context()); err != nil {
			tb.Fatal(err)
		}
		members = append(members, m)
	}
	return members
}

// members returns the stores as New takes them.
func members[M driver.Member](stores []M) []driver.Member {
	var members []driver.Member
	for _, s := range stores {
		members = append(members, s)
	}
	return members
}

// An opened is an engine with its members, so that a second engine can be opened on them.
type opened struct {
	*quorumlock.Engine
	members []driver.Member
}

func open(tb testing.TB, members []driver.Member, opts *quorumlock.Options) opened {
	tb.Helper()
	e, err := quorumlock.New(members, opts)
	if err != nil {
		tb.Fatal(err)
	}
	return opened{Engine: e, members: members}
}

// everLasting is for tests whose leases are longer than the default MaxTTL.
var everLasting = &quorumlock.Options{MaxTTL: 30 * 24 * time.Hour}

// harness opens engines on members for the suite.
func harness(members func(testing.TB) []driver.Member) enginetest.Harness {
	return enginetest.Harness{
		Open: func(tb testing.TB) driver.Engine { return open(tb, members(tb), everLasting) },
		Join: func(tb testing.TB, e driver.Engine) driver.Engine {
			return open(tb, e.(opened).members, everLasting)
		},
		Unit:   time.Second,
		Bubble: synctest.Test,
	}
}

// TestConformanceBehindForward runs the suite on a quorum behind a wrapper.
func TestConformanceBehindForward(t *testing.T) {
	enginetest.RunForwarded(t, harness(func(tb testing.TB) []driver.Member { return members(stores(tb, 3)) }))
}

func TestConformance(t *testing.T) {
	conform := func(name string, members func(testing.TB) []driver.Member) {
		t.Run(name, func(t *testing.T) { enginetest.Run(t, harness(members)) })
	}
	for _, n := range []int{3, 5} {
		conform(fmt.Sprintf("%d members", n), func(tb testing.TB) []driver.Member { return members(stores(tb, n)) })
	}
	conform("members some milliseconds away", func(tb testing.TB) []driver.Member {
		links := linked(stores(tb, 3))
		for i, l := range links {
			l.slow(time.Duration(2*i+2) * time.Millisecond)
		}
		return members(links)
	})
	conform("a member without extras", func(tb testing.TB) []driver.Member {
		all := members(stores(tb, 3))
		all[1] = plain{all[1]}
		return all
	})
}
