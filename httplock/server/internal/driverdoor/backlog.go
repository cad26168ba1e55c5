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

// A backlog has the lines that a stream has not sent yet. INVARIANT I11: its size is bounded, even
// if the stream is slow.
type backlog struct {
	wake chan struct{} // has a value if there are lines

	mu      sync.Mutex // guards the rest
	lines   []any
	notices map[lockinfo.LeaseID]driver.Notice // the latest of each lease ID, but only a grant replaces a grant
}

func newBacklog() *backlog {
	return &backlog{wake: make(chan struct{}, 1), notices: map[lockinfo.LeaseID]driver.Notice{}}
}

// add adds a line if there are fewer than most. Otherwise it drops the line, and adds instead for
// all dropped lines together, unless instead is nil.
func (b *backlog) add(line any, most int, instead any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case len(b.lines) < most:
		b.lines = append(b.lines, line)
	case len(b.lines) == most && instead != nil:
		b.lines = append(b.lines, instead)
	}
	door.Replace(b.wake, struct{}{})
}

// tell adds a notice.
func (b *backlog) tell(id lockinfo.LeaseID, notice driver.Notice) {
	b.mu.Lock()
	defer b.mu.Unlock()
	unread, ok := b.notices[id]
	if ok && (notice.Token != 0 || unread.Token == 0) || !ok && len(b.notices) < mostNotices { // a refresh finds the others
		b.notices[id] = notice
	}
	door.Replace(b.wake, struct{}{})
}

// take removes and returns all lines.
func (b *backlog) take() (all []any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, notice := range b.notices {
		all = append(all, form.Message{LeaseID: id, Token: notice.Token})
	}
	clear(b.notices)
	all = append(all, b.lines...)
	b.lines = nil
	return all
}
