package driverdoor

import (
	"sync"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// mostNotices bounds the notices that are kept for a client without a stream, because they
// outlast its places (INVARIANT I11). By default it is more than the places of a caller.
const mostNotices = 16 << 10

// An outbox has the lines that a stream has not sent yet. INVARIANT I11: its size is bounded, even
// if the stream is slow.
type outbox struct {
	wake chan struct{} // has a value if there are lines

	mu      sync.Mutex // guards the rest
	lines   []any
	notices map[lockinfo.LeaseID]driver.Notice // the latest of each lease ID, but only a grant replaces a grant
}

func newOutbox() *outbox {
	return &outbox{wake: make(chan struct{}, 1), notices: map[lockinfo.LeaseID]driver.Notice{}}
}

// add adds a line if there are fewer than most. Otherwise it drops the line, and adds instead for
// all dropped lines together, unless instead is nil.
func (o *outbox) add(line any, most int, instead any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case len(o.lines) < most:
		o.lines = append(o.lines, line)
	case len(o.lines) == most && instead != nil:
		o.lines = append(o.lines, instead)
	}
	door.Replace(o.wake, struct{}{})
}

// tell adds a notice.
func (o *outbox) tell(id lockinfo.LeaseID, notice driver.Notice) {
	o.mu.Lock()
	defer o.mu.Unlock()
	unread, ok := o.notices[id]
	if ok && (notice.Token != 0 || unread.Token == 0) || !ok && len(o.notices) < mostNotices { // a refresh finds the others
		o.notices[id] = notice
	}
	door.Replace(o.wake, struct{}{})
}

// take removes and returns all lines.
func (o *outbox) take() (all []any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, notice := range o.notices {
		all = append(all, form.Message{LeaseID: id, Token: notice.Token})
	}
	clear(o.notices)
	all = append(all, o.lines...)
	o.lines = nil
	return all
}
