package faultproxy

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// start returns a server, a proxy in front of it and a client.
func start(t *testing.T) (*echo, *Proxy, *caller) {
	t.Helper()
	checkLeaks(t)
	server := startEcho(t)
	p := New(t, server.listener.Addr().String())
	return server, p, dial(t, p)
}

// on makes the proxy apply an action to the requests with the word.
func on(p *Proxy, word string, action Action) {
	p.OnRequest(func(r Request) Action {
		if r.Has(word) {
			return action
		}
		return Action{}
	})
}

func bulk(s string) string { return answer("ECHO", s) }

func TestPassesEveryTypeUnchanged(t *testing.T) {
	_, p, c := start(t)
	for _, command := range []string{"ECHO", "NESTED", "PUSH", "SUBSCRIBE"} {
		c.send(command, "x1")
		c.expect(answer(command, "x1"))
	}
	c.conn.Write([]byte("ECHO inline\r\n"))
	c.expect(bulk("inline"))
	big := strings.Repeat("b", 1<<20)
	c.send("ECHO", big)
	c.expect(bulk(big))
	if got := p.Requests(); got != 6 {
		t.Errorf("counted %d requests, want 6", got)
	}
}

func TestRequestTellsWordsAndConnection(t *testing.T) {
	_, p, first := start(t)
	var mu sync.Mutex
	var seen []Request
	p.OnRequest(func(r Request) Action {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r)
		return Action{}
	})
	first.send("echo", "x")
	first.expect(bulk("x"))
	second := dial(t, p)
	second.send("ECHO", "y")
	second.expect(bulk("y"))
	mu.Lock()
	defer mu.Unlock()
	a, b := seen[0], seen[1]
	if a.Command() != "ECHO" || !a.Has("x") || a.Has("echo") || a.Conn == b.Conn {
		t.Errorf("saw %+v and %+v", a, b)
	}
}

// TestMessagesMatchNoRequest checks that messages of subscriptions do not count as replies.
// Otherwise the proxy would lose the wrong reply.
func TestMessagesMatchNoRequest(t *testing.T) {
	_, p, c := start(t)
	on(p, "victim", Action{Reply: Reset})
	c.send("SUBSCRIBE", "news")
	c.send("PUSH", "a")
	c.send("PUSH", "b")
	c.send("ECHO", "victim")
	c.expect(answer("SUBSCRIBE", "news") + answer("PUSH", "a") + answer("PUSH", "b"))
	c.expectReset()
}

func TestDelaysAddUpPerMessageOnly(t *testing.T) {
	const each = 50 * time.Millisecond
	_, p, c := start(t)
	p.OnRequest(func(Request) Action { return Delay(each, each) })
	began := time.Now()
	for range 20 {
		c.send("ECHO", "x")
	}
	c.expect(strings.Repeat(bulk("x"), 20))
	if took := time.Since(began); took < 2*each || took > 20*each {
		t.Errorf("20 pipelined requests took %s, want about %s", took, 2*each)
	}
}

func TestHoldOutlivesTheClient(t *testing.T) {
	server, p, c := start(t)
	release := make(chan struct{})
	on(p, "held", Action{Hold: release})
	c.send("ECHO", "before")
	c.expect(bulk("before"))
	c.send("ECHO", "held")
	c.send("ECHO", "behind")
	c.expectSilence()
	c.conn.Close()
	other := dial(t, p)
	other.send("ECHO", "other")
	other.expect(bulk("other"))
	if server.carriedOut("ECHO held") {
		t.Fatal("the held request reached the server")
	}
	close(release)
	eventually(t, "both requests reach the server", func() bool {
		return server.carriedOut("ECHO held") && server.carriedOut("ECHO behind")
	})
}

func TestZombieResetsTheClientAndArrivesLater(t *testing.T) {
	server, p, c := start(t)
	release, answered := make(chan struct{}), make(chan struct{})
	zombie := Zombie(release)
	zombie.Answered = func() { close(answered) }
	on(p, "zombie", zombie)
	c.send("ECHO", "zombie")
	c.expectReset()
	if server.carriedOut("ECHO zombie") {
		t.Fatal("the zombie reached the server before its time")
	}
	close(release)
	select {
	case <-answered:
	case <-time.After(patience):
		t.Fatal("the zombie was not answered")
	}
	if !server.carriedOut("ECHO zombie") {
		t.Error("Answered was called before the server carried the request out")
	}
}

func TestSwallowStopsTheStreamAndKeepsTheConnection(t *testing.T) {
	server, p, c := start(t)
	on(p, "victim", Action{Reply: Swallow})
	c.send("ECHO", "first")
	c.send("ECHO", "victim")
	c.send("ECHO", "behind")
	c.expect(bulk("first"))
	eventually(t, "the requests reach the server", func() bool {
		return server.carriedOut("ECHO victim") && server.carriedOut("ECHO behind")
	})
	c.expectSilence()
}

func TestResetComesInsteadOfExactlyOneReply(t *testing.T) {
	server, p, c := start(t)
	on(p, "victim", Action{Reply: Reset})
	c.send("ECHO", "first")
	c.expect(bulk("first"))
	c.send("ECHO", "victim")
	c.expectReset()
	if !server.carriedOut("ECHO victim") {
		t.Error("the server did not carry the request out")
	}
}
