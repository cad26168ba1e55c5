package rediscore

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore/internal/keys"
)

// events receives the events of names. While a caller listens, the engine subscribes to the channel
// on which scripts publish events. It also subscribes to a second channel, on every node of a
// cluster, on which no message is sent: a script publishes an event only if that channel has a
// subscriber on its own node. So the cluster does not broadcast events that no client receives.
type events struct {
	store *Store
	feed  driver.Feed

	mu      sync.Mutex // guards the rest
	heard   int        // number of callers that listen
	listens bool       // the engine is subscribed, on every known node
	closed  bool       // no further caller may listen
	end     context.CancelFunc
	wg      sync.WaitGroup // of the subscription's goroutine
}

// nodesEvery is how often an engine looks for new nodes of a cluster.
const nodesEvery = time.Second

func newEvents(s *Store) *events { return &events{store: s} }

func (v *events) onEvent(listener func(lockinfo.HistoryEvent)) (stop func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	forget := v.feed.OnEvent(listener, v.listens)
	if v.heard++; v.heard == 1 && !v.closed {
		var life context.Context
		life, v.end = context.WithCancel(v.store.life)
		v.wg.Go(func() {
			reconnect(life, v.store.conn, func(session Session) error { return v.session(life, session) })
		})
	}
	return sync.OnceFunc(func() {
		forget()
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.heard--; v.heard == 0 && v.end != nil {
			v.end()
			v.listens = false
		}
	})
}

// wait keeps further callers from listening, and returns when the subscription's goroutine has
// ended, after the store's life.
func (v *events) wait() {
	if v == nil {
		return
	}
	v.mu.Lock()
	v.closed = true
	v.mu.Unlock()
	v.wg.Wait()
}

// session listens until life ends or the subscription breaks.
func (v *events) session(life context.Context, session Session) error {
	space := v.store.keys
	feed, heard := space.Inboxes()+keys.Feed, space.Inboxes()+keys.Heard
	onMessage := func(channel, message string) {
		if channel == feed && life.Err() == nil && v.isHeard() {
			v.message(message)
		}
	}
	broken, err := session.Subscribe(life, onMessage, feed, heard)
	if err != nil {
		return err
	}
	all := presence{life: life, channel: heard, on: map[string]subscribed{}}
	defer all.close()
	v.everywhere(&all)
	v.hears(life, true)
	defer v.hears(life, false)
	looked := time.NewTicker(nodesEvery)
	defer looked.Stop()
	for {
		select {
		case <-broken: //nolint:errcheck // why it broke does not matter
			return nil
		case <-life.Done():
			return nil
		case <-looked.C:
			if v.everywhere(&all) {
				v.hears(life, true)
			}
		}
	}
}

// hears notes whether the engine receives events from now on, and tells the callers of a gap.
func (v *events) hears(life context.Context, listens bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if life.Err() == nil {
		v.listens = listens
		v.feed.Tell(lockinfo.HistoryEvent{Kind: lockinfo.HistoryGap})
	}
}

// isHeard reports whether the callers have received the gap that begins a feed. The gap covers
// events that arrive earlier, which another engine's subscription causes.
func (v *events) isHeard() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.listens
}

// message runs in the connection's reading goroutine. It drops malformed messages.
func (v *events) message(message string) {
	key, rest, _ := strings.Cut(message, "\t")
	clock, item, _ := strings.Cut(rest, "\t")
	name, ours := strings.CutPrefix(key, v.store.keys.Lock(""))
	now := readClock(clock)
	if e, ok := parseEvent(name, item, now); ok && ours && now > 0 {
		v.feed.Tell(e)
	}
}

// A presence is the set of the engine's subscriptions to a channel, one on each node of a cluster.
type presence struct {
	life    context.Context
	channel string
	on      map[string]subscribed // by the node's address
}

// A subscribed session is subscribed until broken receives.
type subscribed struct {
	Session
	broken <-chan error
}

// everywhere subscribes on each node that has no subscription yet. It reports whether there was
// such a node, whose events may have been missed.
func (v *events) everywhere(p *presence) (missed bool) {
	if !v.store.cluster {
		return false
	}
	for address, node := range v.store.conn.Nodes() {
		if there, ok := p.on[address]; ok {
			select {
			case <-there.broken: //nolint:errcheck // why it broke does not matter
				there.Close()
				delete(p.on, address)
			default:
				continue
			}
		}
		session, err := node.Dedicate(p.life)
		if err != nil {
			continue
		}
		broken, err := session.Subscribe(p.life, func(string, string) {}, p.channel)
		if err != nil { // a node that is down publishes nothing
			session.Close()
			continue
		}
		p.on[address], missed = subscribed{session, broken}, true
	}
	return missed
}

func (p *presence) close() {
	for _, s := range p.on {
		s.Close()
	}
}
