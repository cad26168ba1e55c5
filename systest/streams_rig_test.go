package systest

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/systest/traffic"
	"github.com/holdfast-locks/holdfast/wire"
)

// serve is a job: a server for the locks of the store, until the test ends it or sends TERM. It
// reports its URL.
func serve(ctx context.Context, j traffic.Job) (any, error) {
	engine, err := traffic.Open(ctx, j.By, j.Store)
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	s, err := server.New(engine, nil)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &http.Server{Handler: s, ConnContext: server.ConnContext}
	go func() { _ = h.Serve(l) }()
	j.Out("http://" + l.Addr().String())
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.Drain()
	return nil, errors.Join(h.Shutdown(ctx), s.Close(ctx))
}

// startServer starts a server in a process of its own, and returns its URL.
func startServer(t *testing.T, store string) (c *traffic.Crew, url string) {
	t.Helper()
	c = traffic.Start(t, traffic.Job{Job: "serve", Store: store})
	c.Begin()
	c.Next(&url)
	return c, url
}

// A streamer is a client of hold streams that follows the rule of docs/reference/hold-stream.md
// exactly: it works until sent + at_ms + quiet_ms, and continues at the next server if a stream
// ends.
type streamer struct {
	urls  []string
	query string
	req   wire.LeaseRequest
	told  func(wire.HoldLine, time.Time) // may be nil

	at    int // index of urls, modulo their number
	until time.Time
	span  *span // nil unless at work
	spans []span
}

// A span is a period in which a client considered itself the holder.
type span struct {
	name     string
	token    uint64
	from, to time.Time
}

// errLost means that the lock is lost, by the client's rule or according to the server.
var errLost = errors.New("lost")

// hold acquires the lock under a new key, and holds it until the lock is lost or ctx ends. Then it
// hangs up, and returns why.
func (c *streamer) hold(ctx context.Context) error {
	key := "streamer-" + string(lockinfo.NewLeaseID())
	begin := time.Now()
	for {
		err := c.session(ctx, key)
		now := time.Now()
		switch {
		case ctx.Err() != nil:
			c.stop(now)
			return ctx.Err()
		case errors.Is(err, errLost):
			return err
		case c.span != nil && !now.Before(c.until):
			c.stop(c.until)
			return errLost
		case c.span == nil && now.Sub(begin) > patience:
			return fmt.Errorf("no stream within %s: %w", patience, err)
		}
		c.at++
		time.Sleep(2 * time.Millisecond)
	}
}

// session reads one stream to its end.
func (c *streamer) session(ctx context.Context, key string) error {
	link, cancel := context.WithCancel(context.WithoutCancel(ctx)) // hangs up only after the work has stopped
	defer cancel()
	body, err := json.Marshal(c.req)
	if err != nil {
		return err
	}
	sent := time.Now()
	r, err := http.NewRequestWithContext(link, http.MethodPost, c.urls[c.at%len(c.urls)]+"/v1/leases?hold=1"+c.query, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	lines, failed := make(chan wire.HoldLine), make(chan error, 1)
	go func() { failed <- readLines(link, r, lines) }()
	timer := time.NewTimer(c.patience())
	defer timer.Stop()
	for {
		select {
		case l := <-lines:
			if err := c.heard(l, sent); err != nil {
				return err
			}
			timer.Reset(c.patience())
		case err := <-failed:
			return err
		case <-ctx.Done():
			c.stop(time.Now())
			return ctx.Err()
		case <-timer.C:
			if c.span == nil {
				return errors.New("nothing was heard while waiting")
			}
			c.stop(c.until) // the loss is final
			return errLost
		}
	}
}

// patience returns how long to wait for the next line.
func (c *streamer) patience() time.Duration {
	if c.span != nil {
		return time.Until(c.until)
	}
	return c.quiet()
}

func (c *streamer) quiet() time.Duration {
	return min(time.Duration(c.req.TTLMS)*time.Millisecond/3, 10*time.Second)
}

// heard handles a line.
func (c *streamer) heard(l wire.HoldLine, sent time.Time) error {
	now := time.Now()
	if c.told != nil {
		c.told(l, now)
	}
	until := sent.Add(time.Duration(l.AtMS)*time.Millisecond + c.quiet())
	switch l.Event {
	case "acquired":
		switch {
		case !now.Before(until) || c.span != nil && (c.span.token != l.FencingToken || !now.Before(c.until)):
			c.stop(c.until)
			return errLost
		case c.span == nil:
			c.span = &span{name: c.req.Name, token: l.FencingToken, from: now}
		}
		c.until = until
	case "ping":
		if c.span != nil && now.Before(c.until) && until.After(c.until) {
			c.until = until
		}
	case "lost", "refused":
		c.stop(now)
		return errLost
	case "moved":
		return errors.New("moved")
	}
	return nil
}

// stop ends the work, at the given time.
func (c *streamer) stop(at time.Time) {
	if c.span != nil {
		c.span.to = at
		c.spans, c.span = append(c.spans, *c.span), nil
	}
}

// readLines sends the request, and each line of the reply to lines.
func readLines(ctx context.Context, r *http.Request, lines chan<- wire.HoldLine) error {
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answers %s", resp.Status)
	}
	in := bufio.NewScanner(resp.Body)
	for in.Scan() {
		var l wire.HoldLine
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			return fmt.Errorf("the line %q: %w", in.Text(), err)
		}
		select {
		case lines <- l:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := in.Err(); err != nil {
		return err
	}
	return errors.New("the stream has ended")
}

// apart checks that spans of different leases of a name do not overlap, and that tokens grow. It
// returns the shortest pause between two such spans.
func apart(t *testing.T, spans []span) (closest time.Duration) {
	t.Helper()
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(strings.Compare(a.name, b.name), a.from.Compare(b.from))
	})
	closest = time.Hour
	for i := 1; i < len(spans); i++ {
		a, b := spans[i-1], spans[i]
		if a.name != b.name || a.token == b.token {
			continue
		}
		closest = min(closest, b.from.Sub(a.to))
		if b.from.Before(a.to) {
			t.Errorf("%s: two at work for %s: tokens %d and %d", a.name, a.to.Sub(b.from), a.token, b.token)
		}
		if b.token < a.token {
			t.Errorf("%s: the token %d comes after %d", a.name, b.token, a.token)
		}
	}
	return closest
}

// contend lets clients take turns at the locks of their names, each for hold, while disturb runs.
// It returns when they worked.
func contend(t *testing.T, clients []*streamer, hold time.Duration, disturb func(ctx context.Context)) (spans []span) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, c := range clients {
		all.Go(func() {
			for ctx.Err() == nil {
				turn, done := context.WithCancel(ctx)
				c.told = func(l wire.HoldLine, _ time.Time) {
					if l.Event == "acquired" {
						time.AfterFunc(hold, done)
					}
				}
				_ = c.hold(turn) // it was lost, or the turn ended
				done()
				time.Sleep(rand.N(100 * time.Millisecond))
			}
		})
	}
	disturb(ctx)
	cancel()
	all.Wait()
	for _, c := range clients {
		spans = append(spans, c.spans...)
	}
	return spans
}

// A middle is a TCP proxy between clients and a server. It can close only the server's side of its
// connections, and delay what the server sends.
type middle struct {
	listener net.Listener
	target   string

	mu      sync.Mutex
	delay   time.Duration
	servers []*net.TCPConn
	all     sync.WaitGroup
}

func newMiddle(t *testing.T, target string) *middle {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &middle{listener: l, target: target}
	p.all.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		for _, c := range p.servers {
			_ = c.Close()
		}
		p.delay = 0
		p.mu.Unlock()
		p.all.Wait()
	})
	return p
}

func (p *middle) url() string { return "http://" + p.listener.Addr().String() }

func (p *middle) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		up, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.servers = append(p.servers, up.(*net.TCPConn))
		p.mu.Unlock()
		p.all.Go(func() { // the client's end is passed on
			_, _ = up.(*net.TCPConn).ReadFrom(client)
			_ = up.Close()
		})
		p.all.Go(func() { p.pass(up, client) })
	}
}

// pass forwards what the server sends, after the delay. When the server's side is closed, the
// client's side stays open until the client closes it.
func (p *middle) pass(up, client net.Conn) {
	type piece struct {
		text []byte
		at   time.Time
	}
	kept := make(chan piece, 1<<12)
	p.all.Go(func() {
		for k := range kept {
			p.mu.Lock()
			delay := p.delay
			p.mu.Unlock()
			time.Sleep(time.Until(k.at.Add(delay)))
			_, _ = client.Write(k.text)
		}
	})
	defer close(kept)
	for {
		buf := make([]byte, 4096)
		n, err := up.Read(buf)
		if n > 0 {
			kept <- piece{buf[:n], time.Now()}
		}
		if err != nil {
			return
		}
	}
}

// keep delays everything that servers send by d.
func (p *middle) keep(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// reset resets the server's side of all connections.
func (p *middle) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.servers {
		_ = c.SetLinger(0)
		_ = c.Close()
	}
	p.servers = nil
}
