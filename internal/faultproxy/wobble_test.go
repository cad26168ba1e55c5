package faultproxy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// roundTrips returns the durations of n requests in sequence.
func roundTrips(c *caller, n int) []time.Duration {
	var took []time.Duration
	for range n {
		began := time.Now()
		c.send("ECHO", "x")
		c.expect(bulk("x"))
		took = append(took, time.Since(began))
	}
	return took
}

func TestJitterIsRandomAndWithinItsRange(t *testing.T) {
	const least, most = 5 * time.Millisecond, 40 * time.Millisecond
	_, p, c := start(t)
	p.Jitter(least, most, 1)
	took := roundTrips(c, 15)
	if got := slices.Min(took); got < 2*least {
		t.Errorf("a round trip took %s, want at least %s", got, 2*least)
	}
	if d := slices.Max(took) - slices.Min(took); d < (most-least)/2 {
		t.Errorf("round trips differ by %s: %v, want them random", d, took)
	}
	p.Jitter(0, 0, 0)
	if got := slices.Min(roundTrips(c, 5)); got >= 2*least {
		t.Errorf("without jitter a round trip takes %s", got)
	}
}

func TestJitterKeepsTheOrderOfAStream(t *testing.T) {
	_, p, c := start(t)
	p.Jitter(0, 20*time.Millisecond, 2)
	var want strings.Builder
	for i := range 30 {
		c.send("ECHO", fmt.Sprint(i))
		want.WriteString(bulk(fmt.Sprint(i)))
	}
	c.expect(want.String())
}

// TestJitterFollowsItsSeed checks that two proxies with the same seed have the same delays.
func TestJitterFollowsItsSeed(t *testing.T) {
	draws := func(seed uint64) (ds []time.Duration) {
		w := &wobble{proxy: &Proxy{}, number: 3}
		w.proxy.Jitter(0, time.Hour, seed)
		for range 5 {
			ds = append(ds, time.Until(w.arrival(0)).Round(time.Minute))
		}
		return ds
	}
	if a, b, c := draws(1), draws(1), draws(2); !slices.Equal(a, b) || slices.Equal(a, c) {
		t.Errorf("seed 1 gives %v and %v, seed 2 %v", a, b, c)
	}
}

func TestSlicedMessagesArriveWholeAndInPieces(t *testing.T) {
	_, p, c := start(t)
	p.Slice(3, time.Millisecond, 1)
	c.send("NESTED", "x1")
	want := answer("NESTED", "x1")
	c.conn.SetReadDeadline(time.Now().Add(patience))
	got, reads := "", 0
	for buffer := make([]byte, 1024); len(got) < len(want); reads++ {
		n, err := c.conn.Read(buffer)
		if err != nil {
			t.Fatalf("after %q: %v", got, err)
		}
		got += string(buffer[:n])
	}
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if reads < 5 {
		t.Errorf("%d bytes came in %d pieces, want many", len(want), reads)
	}
	long := strings.Repeat("b", 1<<20)
	c.send("ECHO", long)
	c.expect(bulk(long))
	p.Slice(0, 0, 0)
	c.send("ECHO", "y")
	c.expect(bulk("y"))
}

// TestReorderGivesEachConnectionItsLatency checks that each direction of each connection has its
// own fixed latency.
func TestReorderGivesEachConnectionItsLatency(t *testing.T) {
	const most = time.Hour
	synctest.Test(t, func(t *testing.T) {
		p := &Proxy{}
		p.Reorder(most, 7)
		seen := map[time.Duration]bool{}
		for number := range 6 {
			for direction := range uint64(2) {
				w := &wobble{proxy: p, number: number, direction: direction}
				lag := time.Until(w.arrival(0))
				if next := time.Until(w.arrival(0)); lag < 0 || lag > most || next != lag || seen[lag] {
					t.Errorf("connection %d, direction %d: a latency of %s and then of %s, others have %v", number, direction, lag, next, seen)
				}
				seen[lag] = true
				p.Reorder(0, 0)
				if lag := time.Until(w.arrival(0)); lag != 0 {
					t.Errorf("a latency of %s without reordering", lag)
				}
				p.Reorder(most, 7)
			}
		}
	})
}

// TestReorderLetsConnectionsOvertake checks that a request overtakes a request on another
// connection if the latencies differ by enough. The test doubles them until this happens, however
// busy the machine is.
func TestReorderLetsConnectionsOvertake(t *testing.T) {
	const seed, longest = 7, patience / 3 // a round trip takes twice as long
	server, p, first := start(t)
	callers := map[int]*caller{} // by the numbers of their connections
	numbers := make(chan int, 1)
	p.OnRequest(func(r Request) Action { numbers <- r.Conn; return Action{} })
	for c := first; len(callers) < 6; c = dial(t, p) {
		roundTrips(c, 1)
		callers[<-numbers] = c
	}
	p.OnRequest(nil)
	for most := 200 * time.Millisecond; ; most *= 2 {
		lag := func(number int) time.Duration {
			return (&spread{0, most, seed}).draw((&wobble{number: number}).source(seed))
		}
		order := slices.SortedFunc(maps.Keys(callers), func(a, b int) int { return cmp.Compare(lag(a), lag(b)) })
		fast, slow := callers[order[0]], callers[order[len(order)-1]]
		p.Reorder(most, seed)
		slow.send("ECHO", "sent first")
		slow.send("ECHO", "behind it")
		fast.send("ECHO", "sent later")
		fast.expect(bulk("sent later"))
		slow.expect(bulk("sent first") + bulk("behind it"))
		server.mu.Lock()
		got := slices.Clone(server.done[len(server.done)-3:])
		server.mu.Unlock()
		if slices.Index(got, "ECHO sent first") > slices.Index(got, "ECHO behind it") {
			t.Fatalf("the server saw %q: a stream has changed its order", got)
		}
		if got[0] == "ECHO sent later" {
			return
		}
		if 2*most > longest {
			t.Fatalf("the server saw %q, with latencies of %s at most", got, most)
		}
	}
}

func TestBlackHoleOfOneConnection(t *testing.T) {
	server, p, c := start(t)
	on(p, "victim", Action{Reply: BlackHole})
	other := dial(t, p)
	other.send("ECHO", "y")
	other.expect(bulk("y"))
	c.send("ECHO", "victim")
	c.expectSilence()
	c.send("ECHO", "lost")
	other.send("ECHO", "lives")
	other.expect(bulk("lives"))
	c.expectSilence()
	if server.carriedOut("ECHO lost") {
		t.Error("a request came out of the black hole")
	}
}

func TestBlackHoleOfPresentConnections(t *testing.T) {
	_, p, c := start(t)
	c.send("ECHO", "x")
	c.expect(bulk("x"))
	p.BlackHoleConns()
	fresh := dial(t, p)
	fresh.send("ECHO", "lives")
	fresh.expect(bulk("lives"))
	c.send("ECHO", "lost")
	c.expectSilence()
}

func TestBlackHoleLosesTheReplyOnTheWire(t *testing.T) {
	server, p, c := start(t)
	p.OnRequest(func(Request) Action { return Delay(0, 20*time.Millisecond) })
	c.send("ECHO", "answered")
	eventually(t, "the request reaches the server", func() bool { return server.carriedOut("ECHO answered") })
	p.BlackHoleConns()
	c.expectSilence()
}

func TestBlackHoleInsteadOfOneReply(t *testing.T) {
	server, p, c := start(t)
	on(p, "victim", Action{Reply: BlackHole})
	c.send("ECHO", "first")
	c.send("ECHO", "victim")
	c.expect(bulk("first"))
	eventually(t, "the request reaches the server", func() bool { return server.carriedOut("ECHO victim") })
	c.expectSilence()
	c.send("ECHO", "behind")
	c.expectSilence()
	if server.carriedOut("ECHO behind") {
		t.Error("a request came out of the black hole")
	}
}
