package faultproxy

import (
	"net"
	"testing"
	"time"
)

func TestLatencyDelaysBothWaysAndMessages(t *testing.T) {
	const each = 50 * time.Millisecond
	_, p, c := start(t)
	c.send("SUBSCRIBE", "news")
	c.expect(answer("SUBSCRIBE", "news"))
	p.Latency(each)
	for _, command := range []string{"PUSH", "ECHO"} {
		began := time.Now()
		c.send(command, "x")
		c.expect(answer(command, "x"))
		if took := time.Since(began); took < 2*each {
			t.Errorf("%s and its answer took %s, want at least %s", command, took, 2*each)
		}
	}
}

func TestLostMessagesAreOnlyMessages(t *testing.T) {
	_, p, c := start(t)
	p.LoseMessages(true)
	c.send("SUBSCRIBE", "news")
	c.expect(answer("SUBSCRIBE", "news"))
	c.send("PUSH", "lost")
	c.expect(bulk("lost"))
	p.LoseMessages(false)
	c.send("PUSH", "a")
	c.expect(answer("PUSH", "a"))
}

func TestCutRefusesUntilHeal(t *testing.T) {
	_, p, c := start(t)
	c.send("ECHO", "x")
	c.expect(bulk("x"))
	p.Cut()
	c.expectReset()
	expectRefused(t, p)
	p.Heal()
	c = dial(t, p)
	c.send("ECHO", "y")
	c.expect(bulk("y"))
}

func TestDropBreaksOnlyPresentConnections(t *testing.T) {
	_, p, c := start(t)
	c.send("ECHO", "x")
	c.expect(bulk("x"))
	p.Drop()
	c.expectReset()
	c = dial(t, p)
	c.send("ECHO", "y")
	c.expect(bulk("y"))
}

func TestBlackHoleDeliversAfterHeal(t *testing.T) {
	server, p, c := start(t)
	c.send("ECHO", "x")
	c.expect(bulk("x"))
	p.BlackHole()
	p.BlackHole() // a second call must not strand connections of the first
	c.send("ECHO", "old connection")
	fresh := dial(t, p)
	fresh.send("ECHO", "new connection")
	gone := dial(t, p)
	gone.send("ECHO", "gone")
	gone.expectSilence()
	gone.conn.Close()
	c.expectSilence()
	fresh.expectSilence()
	for _, command := range []string{"ECHO old connection", "ECHO new connection", "ECHO gone"} {
		if server.carriedOut(command) {
			t.Errorf("%s came through", command)
		}
	}
	p.Heal()
	c.expect(bulk("old connection"))
	fresh.expect(bulk("new connection"))
	eventually(t, "the request of the client that gave up arrives", func() bool { return server.carriedOut("ECHO gone") })
}

func TestServerThatIsNotThere(t *testing.T) {
	checkLeaks(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := New(t, listener.Addr().String())
	listener.Close()
	expectRefused(t, p)
}

func TestBadRequestBreaksTheConnection(t *testing.T) {
	for _, bad := range []string{"*x\r\n", "*-2\r\n", "*2097152\r\n", "*1\r\n:1\r\n", "*1\r\n$x\r\n", "\r\n"} {
		t.Run(bad, func(t *testing.T) {
			_, _, c := start(t)
			c.conn.Write([]byte(bad))
			c.expectReset()
		})
	}
}

// TestCloseEndsWhatIsHeld checks that the proxy ends although a request is still held.
func TestCloseEndsWhatIsHeld(t *testing.T) {
	_, p, c := start(t)
	p.OnRequest(func(Request) Action { return Action{Hold: make(chan struct{})} })
	c.send("ECHO", "held for ever")
	eventually(t, "the request is on the wire", func() bool { return p.Requests() == 1 })
	p.BlackHole()
}
