package pglock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Notices are sent after the commit of the statement that causes them. A notification inside the
// transaction would hold a server-wide lock while the commit waits for the disk, and its failure
// would undo the grant. Fairness does not depend on notices: a waiter refreshes its place.

// notices are the notices about one name.
type notices struct {
	Notices []struct {
		ID    lockinfo.LeaseID `json:"id"`
		Token uint64           `json:"token"` // 0: it is time for a Refresh
		Inbox string           `json:"inbox"`
	} `json:"notices"`
	Name string `json:"name"`
	From int64  `json:"from"` // the first event; 0 if no engine listens
	To   int64  `json:"to"`
}

// Channels that all engines of a schema share. An engine's own channel is named after its inbox.
const (
	breaks = "breaks"
	events = "events"
)

// channel returns the name of a channel of this schema.
func (e *engine) channel(of string) string {
	sum := sha256.Sum256([]byte(e.opts.Schema))
	return "holdfast_" + hex.EncodeToString(sum[:8]) + "_" + of
}

// send sends notices. It notifies the waiters of this engine directly.
func (e *engine) send(all []notices) {
	var messages []message
	for _, n := range all {
		for _, t := range n.Notices {
			if t.Inbox == e.inbox {
				e.watches.Tell(t.ID, driver.Notice{Token: t.Token})
			} else {
				messages = append(messages, message{e.channel(t.Inbox), fmt.Sprintf("%s %d", t.ID, t.Token)})
			}
		}
		if n.From > 0 {
			messages = append(messages, message{e.channel(events), fmt.Sprintf("%d %d %s", n.From, n.To, n.Name)})
		}
	}
	e.post(messages)
}

// A message is one notification.
type message struct{ channel, payload string }

// A sender sends the messages that have accumulated in one statement.
type sender struct {
	mu      sync.Mutex
	waiting []message
	sending chan struct{} // closed when the sending goroutine has ended; nil if there is none
	closed  bool
}

// post sends messages in the background, after those that are waiting.
func (e *engine) post(messages []message) {
	s := &e.sender
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(messages) == 0 || s.closed {
		return
	}
	if s.waiting = append(s.waiting, messages...); s.sending != nil {
		return
	}
	s.sending = make(chan struct{})
	e.users.Go(func() {
		for batch := s.take(); len(batch) > 0; batch = s.take() {
			e.notify(batch)
		}
	})
}

// take returns the waiting messages. If there are none, the goroutine ends.
func (s *sender) take() []message {
	s.mu.Lock()
	defer s.mu.Unlock()
	batch := s.waiting
	if s.waiting = nil; len(batch) == 0 {
		close(s.sending)
		s.sending = nil
	}
	return batch
}

// flush refuses further messages, and waits until all are sent, at most for limit.
func (s *sender) flush(limit time.Duration) {
	s.mu.Lock()
	s.closed = true
	sending := s.sending
	s.mu.Unlock()
	if sending == nil {
		return
	}
	select {
	case <-sending:
	case <-time.After(limit):
	}
}

// notify sends messages. If any are lost, the refreshes of waiters, the renewals of holders, and
// the next message of a feed make up for them.
func (e *engine) notify(batch []message) {
	ctx, cancel := context.WithTimeout(e.life, 5*time.Second)
	defer cancel()
	for some := range slices.Chunk(batch, driver.MaxBatch) {
		_ = e.tryNotify(ctx, some)
	}
}

// tryNotify sends a batch in one statement. The server wakes the listeners after the commit, so the
// commit does not wait for the disk.
func (e *engine) tryNotify(ctx context.Context, batch []message) error {
	var channels, payloads []string
	for _, n := range batch {
		channels, payloads = append(channels, n.channel), append(payloads, n.payload)
	}
	return e.query(ctx, renewing, `SELECT pg_catalog.pg_notify(c, p), pg_catalog.set_config('synchronous_commit', 'off', true)
		FROM unnest($1::text[], $2::text[]) AS n (c, p)`, []any{channels, payloads}, func(pgx.Rows) error { return nil })
}
