package sim

import (
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A link is a connection, as the client sees it. Data arrive in order, late or never, and nothing
// arrives after data that were lost.
type link struct {
	host     *host
	id       int
	session  *session
	requests *pump
	replies  *pump

	mu       sync.Mutex    // guards the rest
	chance   *rand.Rand    //
	out      []byte        // written, but no whole command yet
	in       []byte        // arrived, but not read yet
	err      error         // the error of later reads and writes
	wake     chan struct{} // closed when in, err or deadline changes
	deadline time.Time     // of reading
	hung     bool          // nothing more arrives
	answers  bool          // the replies arrive
	delay    time.Duration // of the reply that is being sent
}

var _ net.Conn = (*link)(nil)

func (l *link) String() string { return l.host.name + "#" + strconv.Itoa(l.id) }

// newLink returns a link. The caller holds the network's lock.
func newLink(h *host, id int) *link {
	l := &link{host: h, id: id, chance: streamOf(h.net.seed, id), wake: make(chan struct{}), answers: true}
	l.session = &session{send: l.reply}
	l.requests = &pump{blocked: func() (time.Duration, bool) {
		wait, ever := h.waits()
		return max(wait, h.net.serverWaits()), ever
	}}
	l.replies = &pump{blocked: h.waits}
	return l
}

// Write sends the complete commands among the bytes written so far.
func (l *link) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return 0, l.err
	}
	l.out = append(l.out, b...)
	for {
		args, rest, err := decode(l.out)
		if err != nil {
			return 0, err
		}
		if args == nil {
			return len(b), nil
		}
		l.out = append([]byte(nil), rest...)
		f := l.host.net.draw(l.chance)
		l.requests.push(f.delay, func() { l.arrive(args, f) })
	}
}

// arrive handles a request on the server's side.
func (l *link) arrive(args []string, f fate) {
	n := l.host.net
	l.mu.Lock()
	hung := l.hung
	l.delay = f.replyDelay
	l.mu.Unlock()
	switch {
	case hung:
		return
	case f.lose:
		n.count("lose", "%v: request %s", l, brief(args))
		l.hang(f.reset)
		return
	case f.mute:
		n.count("mute", "%v: the reply to %s", l, brief(args))
		l.mu.Lock()
		l.answers = false
		l.mu.Unlock()
	}
	script := strings.HasPrefix(strings.ToUpper(args[0]), "EVAL")
	l.carryOut(args, script && f.twice, f.second)
	if f.mute {
		l.hang(f.reset)
		if script && f.replay {
			time.AfterFunc(f.replayAfter, func() { l.replay(args) })
		}
	}
}

// carryOut makes the server execute a request, perhaps twice. The reply is to the first or to the
// second execution.
func (l *link) carryOut(args []string, twice, second bool) {
	n, nobody := l.host.net, &session{send: func([]byte) {}}
	switch {
	case !twice:
		n.server.handle(l.session, args)
		return
	case second:
		n.server.handle(nobody, args)
		n.server.handle(l.session, args)
	default:
		n.server.handle(l.session, args)
		n.server.handle(nobody, args)
	}
	n.count("twice", "%v: %s", l, brief(args))
}

// replay repeats a request, as a proxy does that got no reply.
func (l *link) replay(args []string) {
	n := l.host.net
	if n.isDown() || n.serverWaits() > 0 {
		return
	}
	n.count("replay", "%v: %s", l, brief(args))
	n.server.handle(&session{send: func([]byte) {}}, args)
}

// reply sends bytes to the client. The caller holds the server's lock.
func (l *link) reply(b []byte) {
	l.mu.Lock()
	delay, dropped := l.delay, l.hung || !l.answers
	if notice := b[0] == '>' && strings.Contains(string(b[:min(len(b), 20)]), "message"); notice && !dropped {
		delay, dropped = l.host.net.drawNotice(l.chance)
	}
	l.mu.Unlock()
	if !dropped {
		l.replies.push(delay, func() { l.deliver(b) })
	}
}

func (l *link) deliver(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.hung && l.err == nil {
		l.in = append(l.in, b...)
		l.changedLocked()
	}
}

// hang loses everything from now on. With reset, the client sees a reset connection.
func (l *link) hang(reset bool) {
	l.mu.Lock()
	l.hung = true
	l.mu.Unlock()
	l.host.net.server.leave(l.session)
	if reset {
		l.replies.push(usual, func() { l.fail(syscall.ECONNRESET) })
	}
}

// lost ends the link because the server is gone.
func (l *link) lost() {
	l.requests.clear()
	l.hang(true)
}

func (l *link) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
		l.changedLocked()
	}
}

func (l *link) changedLocked() {
	close(l.wake)
	l.wake = make(chan struct{})
}

// Read implements net.Conn.
func (l *link) Read(b []byte) (int, error) {
	for {
		l.mu.Lock()
		if len(l.in) > 0 {
			n := copy(b, l.in)
			l.in = l.in[n:]
			l.mu.Unlock()
			return n, nil
		}
		err, wake, deadline := l.err, l.wake, l.deadline
		l.mu.Unlock()
		var over <-chan time.Time
		if !deadline.IsZero() {
			over = time.After(time.Until(deadline))
		}
		switch {
		case err != nil:
			return 0, err
		case over != nil && !time.Now().Before(deadline):
			return 0, os.ErrDeadlineExceeded
		}
		select {
		case <-wake:
		case <-over:
		}
	}
}

// Close ends the link for the client. Half of the time, requests under way still arrive, as from
// the buffers of a real connection.
func (l *link) Close() error {
	l.mu.Lock()
	open := l.err == nil
	arrives := l.chance.Float64() < 0.5
	l.answers = false
	l.mu.Unlock()
	if !open {
		return nil
	}
	l.fail(io.ErrClosedPipe)
	if !arrives {
		l.requests.clear()
	}
	l.requests.push(usual, func() {
		n := l.host.net
		n.server.leave(l.session)
		n.mu.Lock()
		delete(n.links, l)
		n.mu.Unlock()
	})
	return nil
}

func (l *link) SetDeadline(t time.Time) error { return l.SetReadDeadline(t) }

func (l *link) SetReadDeadline(t time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deadline = t
	l.changedLocked()
	return nil
}

// SetWriteDeadline has nothing to do: Write does not block.
func (l *link) SetWriteDeadline(time.Time) error { return nil }

func (l *link) LocalAddr() net.Addr  { return &net.TCPAddr{} }
func (l *link) RemoteAddr() net.Addr { return &net.TCPAddr{} }

// brief formats a command for traces: its first words, with hashes and long words cut.
func brief(args []string) string {
	words := []string{args[0]}
	for _, arg := range args[1:] {
		if len(arg) == 40 {
			arg = arg[:6]
		}
		if len(arg) > 60 {
			arg = arg[:60]
		}
		words = append(words, arg)
		if len(words) == 5 {
			break
		}
	}
	return strings.Join(words, " ")
}
