package quorum

import (
	"testing"
	"time"
)

// TestProtocol explores the protocol with all its rules. In each search messages are delayed, lost
// and repeated arbitrarily. With early expiries the tokens must be right; without them there must
// also be only one holder.
func TestProtocol(t *testing.T) {
	tests := []struct {
		name  string
		p     protocol
		light protocol // explored under the race detector
		least int      // states that must be reached, so that an empty search is noticed
	}{{
		name:  "two clients, four early expiries",
		p:     protocol{clients: 2, tokens: 4, expiries: 4, twice: 2},
		light: protocol{clients: 2, tokens: 3, expiries: 2, twice: 1},
		least: 1_700_000,
	}, {
		name:  "two clients that extend and release, two early expiries, counters unequal",
		p:     protocol{clients: 2, tokens: 3, expiries: 2, twice: 2, extend: true, release: true, uneven: true},
		light: protocol{clients: 2, tokens: 2, expiries: 2, extend: true, release: true, uneven: true},
		least: 1_200_000,
	}, {
		name:  "two clients that extend and release, no expiry",
		p:     protocol{clients: 2, tokens: 3, twice: 2, extend: true, release: true},
		light: protocol{clients: 2, tokens: 2, twice: 1, extend: true, release: true},
		least: 450_000,
	}, {
		name:  "three clients, two early expiries",
		p:     protocol{clients: 3, tokens: 3, expiries: 2, twice: 1},
		light: protocol{clients: 3, tokens: 2, expiries: 2},
		least: 1_100_000,
	}, {
		name:  "three clients that extend, two early expiries",
		p:     protocol{clients: 3, tokens: 3, expiries: 2, extend: true},
		light: protocol{clients: 2, tokens: 3, expiries: 2, extend: true},
		least: 950_000,
	}, {
		name:  "two clients that extend and release, two empty restarts",
		p:     protocol{clients: 2, tokens: 2, restarts: 2, extend: true, release: true},
		light: protocol{clients: 2, tokens: 2, restarts: 1, extend: true},
		least: 1_200_000,
	}, {
		name:  "two clients, two empty restarts, two early expiries",
		p:     protocol{clients: 2, tokens: 4, expiries: 2, restarts: 2},
		light: protocol{clients: 2, tokens: 2, expiries: 1, restarts: 1},
		least: 2_500_000,
	}, {
		name:  "three clients, an empty restart, an early expiry",
		p:     protocol{clients: 3, tokens: 2, expiries: 1, restarts: 1},
		light: protocol{clients: 2, tokens: 3, expiries: 1, restarts: 1},
		least: 800_000,
	}, {
		name:  "two clients that give way, two early expiries",
		p:     protocol{clients: 2, tokens: 3, expiries: 2, twice: 1, giving: 2},
		light: protocol{clients: 2, tokens: 2, expiries: 1, twice: 1, giving: 1},
		least: 700_000,
	}, {
		name:  "two clients that extend and release, one gives way, no expiry",
		p:     protocol{clients: 2, tokens: 3, twice: 1, giving: 1, extend: true, release: true},
		light: protocol{clients: 2, tokens: 2, giving: 1, extend: true, release: true},
		least: 550_000,
	}, {
		name:  "two clients that come back and release, no expiry",
		p:     protocol{clients: 2, tokens: 3, twice: 1, returns: 2, release: true},
		light: protocol{clients: 2, tokens: 2, returns: 1, release: true},
		least: 100_000,
	}, {
		name:  "two clients that come back, extend and release, two early expiries",
		p:     protocol{clients: 2, tokens: 3, expiries: 2, returns: 1, extend: true, release: true},
		light: protocol{clients: 2, tokens: 2, expiries: 1, returns: 1, release: true},
		least: 100_000,
	}, {
		name:  "two clients that come back, an empty restart, an early expiry",
		p:     protocol{clients: 2, tokens: 3, expiries: 1, restarts: 1, returns: 2},
		light: protocol{clients: 2, tokens: 2, restarts: 1, returns: 1},
		least: 100_000,
	}, {
		name:  "two clients with one lease ID and a rival, no expiry",
		p:     protocol{clients: 3, tokens: 2, shared: true},
		light: protocol{clients: 3, tokens: 1, shared: true},
		least: 250_000,
	}, {
		name:  "three clients, one comes back, no expiry",
		p:     protocol{clients: 3, tokens: 3, returns: 1},
		light: protocol{clients: 2, tokens: 3, returns: 1},
		least: 100_000,
	}, {
		name:  "two clients that extend and whose locks are broken, no expiry",
		p:     protocol{clients: 2, tokens: 2, extend: true, release: true, breaks: true},
		light: protocol{clients: 2, tokens: 2, extend: true, breaks: true},
		least: 100_000,
	}, {
		name:  "two clients that extend and whose locks are broken, an empty restart",
		p:     protocol{clients: 2, tokens: 2, restarts: 1, extend: true, breaks: true},
		light: protocol{clients: 2, tokens: 2, extend: true, breaks: true},
		least: 500_000,
	}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p, least := test.p, test.least
			if underRace {
				p, least = test.light, 5_000
			}
			start := time.Now()
			r, err := search(&p)
			t.Logf("%d states in %s", r.states, time.Since(start).Round(time.Millisecond))
			switch {
			case err != nil:
				t.Error(err)
			case r.broken != "":
				p.ordered = true // for a trace with the real node numbers
				r, _ = search(&p)
				t.Errorf("%s:\n%s", r.broken, describe(&p, r))
			case r.states < least:
				t.Errorf("%d states, want at least %d", r.states, least)
			}
		})
	}
}

// TestEachRuleIsNeeded switches off one rule at a time. The search must then find a violation
// within bounds in which the whole protocol has none.
func TestEachRuleIsNeeded(t *testing.T) {
	tests := []struct {
		name string
		p    protocol
		want string
	}{{
		"a node accepts whatever its counter is",
		protocol{clients: 2, tokens: 2, expiries: 1, switched: acceptAbove}, sameToken,
	}, {
		"counting all nodes that answered, in either round",
		protocol{clients: 2, tokens: 2, expiries: 1, twice: 1, switched: countExact}, sameToken,
	}, {
		"one round of maxima",
		protocol{clients: 2, tokens: 3, expiries: 1, uneven: true, switched: writeBack}, sameToken,
	}, {
		"owner check only, by a node that sees a proposal",
		protocol{clients: 2, tokens: 3, twice: 1, switched: matchToken}, twoHolders,
	}, {
		"owner check only, by a node that sees a withdrawal",
		protocol{clients: 2, tokens: 3, twice: 1, switched: withdrawToken}, twoHolders,
	}, {
		"repair without a look at the counter",
		protocol{clients: 2, tokens: 2, expiries: 2, extend: true, switched: repairBelow}, extendedOld,
	}, {
		"a release that leaves the counter",
		protocol{clients: 1, tokens: 1, extend: true, release: true, switched: releaseLifts}, cameBack,
	}, {
		"a break that leaves the counter",
		protocol{clients: 1, tokens: 1, extend: true, breaks: true, switched: releaseLifts}, cameBack,
	}, {
		"no quarantine",
		protocol{clients: 2, tokens: 2, restarts: 1, switched: keepQuiet}, sameToken,
	}, {
		"quarantine, but tokens below the clock",
		protocol{clients: 2, tokens: 2, restarts: 1, switched: clockFloor}, sameToken,
	}, {
		"giving way, and counting all that had accepted",
		protocol{clients: 2, tokens: 2, giving: 1, switched: retract}, twoHolders,
	}, {
		"a second round below the first",
		protocol{clients: 2, tokens: 3, twice: 1, switched: roundsUp}, twoHolders,
	}, {
		"a second round below the first, and a release",
		protocol{clients: 1, tokens: 2, twice: 1, release: true, switched: roundsUp}, cameBack,
	}, {
		"coming back with the same token, or a smaller",
		protocol{clients: 2, tokens: 2, returns: 1, switched: returnsUp}, twoHolders,
	}, {
		"taking back what another engine has proposed under the lease ID",
		protocol{clients: 3, tokens: 2, shared: true, switched: ownWithdrawals}, twoHolders,
	}, {
		"counting what another engine has proposed under the lease ID",
		protocol{clients: 3, tokens: 2, shared: true, switched: ownProposals}, twoHolders,
	}, {
		"an extension that confirms nothing",
		protocol{clients: 3, tokens: 2, shared: true, switched: confirms}, twoHolders,
	}}
	seen := map[rule]bool{}
	for _, test := range tests {
		seen[test.p.switched] = true
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := test.p
			p.ordered = true
			without, err := search(&p)
			if err != nil {
				t.Fatal(err)
			}
			if without.broken != test.want || len(without.trace) == 0 {
				t.Errorf("without the rule the search found %q in %d steps, want %q", without.broken, len(without.trace), test.want)
			}
			t.Logf("%s (%d states):\n%s", without.broken, without.states, describe(&p, without))
			p.switched, p.ordered = noRule, false
			if p.shared {
				return // TestProtocol explores these bounds
			}
			if with, err := search(&p); err != nil || with.broken != "" {
				t.Errorf("with the rule: %q, %v", with.broken, err)
			}
		})
	}
	for r := acceptAbove; r <= confirms; r++ {
		if !seen[r] {
			t.Errorf("no case without rule %d", r)
		}
	}
}

// TestTraceReads checks that a trace names the client, the message and the node of each step.
func TestTraceReads(t *testing.T) {
	p := protocol{clients: 1, tokens: 1, extend: true, release: true, ordered: true, switched: releaseLifts}
	r, err := search(&p)
	if err != nil {
		t.Fatal(err)
	}
	const want = `  1  A begins: it proposes 1 to all nodes
  2  A's proposal of 1 arrives at node 1: A has the lock with 1 (counter 1)
  3  A's proposal of 1 arrives at node 2: A has the lock with 1 (counter 1)
  4  A counts its answers: it holds the lock with token 1
  5  A releases
  6  A's release of 1 arrives at node 1: free (counter 1)
  7  A's release of 1 arrives at node 3: free (counter 0)
  8  A's proposal of 1 arrives at node 3: A has the lock with 1 (counter 1)
`
	if got := describe(&p, r); got != want {
		t.Errorf("trace:\n%s\nwant:\n%s", got, want)
	}
}

// TestKeys checks that encoding a state and decoding it returns the same state.
func TestKeys(t *testing.T) {
	p := protocol{clients: 3, tokens: 7, expiries: 7, restarts: 3, twice: 2, giving: 2, returns: 2, extend: true, release: true, uneven: true, shared: true, ordered: true}
	v := newVisited()
	for _, k := range p.initial() {
		v.add(k, 0)
	}
	const enough = 20_000
	for at := 0; at < len(v.keys) && len(v.keys) < enough; at++ {
		w := v.keys[at].unpack()
		if got := w.pack(false); got != v.keys[at] {
			t.Fatalf("%x became %x", v.keys[at], got)
		}
		p.next(v.keys[at], func(to key, _ step, _ string) { v.add(to, uint32(at)) })
	}
	if len(v.keys) < enough {
		t.Errorf("%d states, want %d", len(v.keys), enough)
	}
}
