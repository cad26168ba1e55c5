package lookdoor

import (
	"context"
	"crypto/rand"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

const (
	// mostSwept is the longest list that has revisions.
	mostSwept = 125_000

	sweepLimit = time.Minute
	tooManyFor = time.Minute

	// The time from one list to the next is poll, or resync if the store has events. It is
	// longer if a list takes more than 1/sweepShare of that time.
	poll       = 2 * time.Second
	resync     = 10 * time.Second
	sweepShare = 20

	// delayMost is how long a list waits at most for more requests.
	delayMost = 200 * time.Millisecond

	revisionHeader = "Holdfast-Revision"
	sinceHeader    = "Holdfast-Since"
	nextHeader     = "Holdfast-Next-Ms"
)

// sweeps lists all locks for requests that want only changes. A request gets a list that begins
// after it, and shares it with other requests: there is one list at a time, however many pages
// are open.
type sweeps struct {
	house   *door.House
	server  string        // part of each revision, which is valid at this server only
	running chan struct{} // has a value while a list is under way

	mu     sync.Mutex
	next   *sweep        // has not begun
	many   time.Time     // when there were too many locks
	number uint64        // of the latest list
	took   time.Duration // for the latest list
	marks  *marks
}

// A sweep is one list of all locks.
type sweep struct {
	done chan struct{} // closed when the rest is set
	err  error
	many bool // too many locks for revisions

	locks    []lockinfo.LockState
	at       []uint64          // the revision of each
	gone     map[string]uint64 // the revisions of names without holders and waiters
	revision uint64
	oldest   uint64
	period   time.Duration // from one list to the next
}

func openSweeps(h *door.House) *sweeps {
	return &sweeps{house: h, server: rand.Text(), running: make(chan struct{}, 1), marks: newMarks()}
}

// get returns a list that begins after the call.
func (k *sweeps) get(ctx context.Context) (*sweep, error) {
	k.mu.Lock()
	if time.Since(k.many) < tooManyFor {
		k.mu.Unlock()
		return &sweep{many: true}, nil
	}
	s := k.next
	if s == nil {
		s = &sweep{done: make(chan struct{}), err: door.ErrInternal}
		k.next = s
		k.house.Go("list", k.run)
	}
	k.mu.Unlock()
	select {
	case <-s.done:
		return s, s.err
	case <-ctx.Done():
		return nil, ask.Harmless(ctx, ctx.Err())
	}
}

// run makes the next list.
func (k *sweeps) run(ctx context.Context) {
	k.running <- struct{}{}
	defer func() { <-k.running }()
	s := k.begin()
	defer close(s.done)
	ctx, cancel := ask.Limit(ctx, sweepLimit)
	defer cancel()
	began := time.Now()
	for lock, err := range k.house.Client.List(ctx, "") {
		if err != nil {
			s.err = err
			return
		}
		if door.Reserved(lock.Name) {
			continue
		}
		for i := range lock.Holders {
			lock.Holders[i].LeaseID = "" // never shown, and may keep a long text in memory
		}
		if s.locks = append(s.locks, lock); len(s.locks) > mostSwept {
			break
		}
	}
	k.settle(s, time.Since(began))
	s.err = nil
}

// begin waits for more requests, for an eighth of the time that the latest list took, and returns
// the sweep that they share.
func (k *sweeps) begin() *sweep {
	k.mu.Lock()
	took := k.took
	k.mu.Unlock()
	time.Sleep(min(took/8, delayMost))
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.next
	k.next = nil
	return s
}

// settle notes what has changed since the last list.
func (k *sweeps) settle(s *sweep, took time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s.period = k.period(took)
	k.took = took
	if len(s.locks) > mostSwept {
		s.locks, s.many, k.many, k.marks = nil, true, time.Now(), newMarks()
		return
	}
	k.number++
	k.marks.update(k.number, s.locks)
	s.revision, s.oldest = k.marks.latest, k.marks.oldest
	s.at = make([]uint64, len(s.locks))
	for i := range s.locks {
		s.at[i] = k.marks.names[s.locks[i].Name].at
	}
	s.gone = make(map[string]uint64, k.marks.gone)
	for name, m := range k.marks.names {
		if m.gone {
			s.gone[name] = m.at
		}
	}
}

// period returns the time from one list to the next after a list that took this long. The
// shorter of the latest two lists counts: the store may have stalled during the other one.
func (k *sweeps) period(took time.Duration) time.Duration {
	if k.took > 0 {
		took = min(took, k.took)
	}
	period := poll
	if k.house.Features.Historian != nil {
		period = resync
	}
	for period < sweepShare*took {
		period *= 2
	}
	return period
}

// pause returns how long a client waits for the next list. All clients wait until the same
// instant, so that they share the list.
func (s *sweep) pause(now time.Time) time.Duration {
	pause := s.period - time.Duration(now.UnixNano())%s.period
	if pause < s.period/4 {
		pause += s.period
	}
	return pause
}

// since yields the locks that have changed after a revision; 0 yields all. A name without
// holders and waiters is a free lock.
func (s *sweep) since(revision uint64) iter.Seq2[lockinfo.LockState, error] {
	return func(yield func(lockinfo.LockState, error) bool) {
		for i, lock := range s.locks {
			if s.at[i] > revision && !yield(lock, nil) {
				return
			}
		}
		for name, at := range s.gone {
			if revision > 0 && at > revision && !yield(lockinfo.LockState{Name: name}, nil) {
				return
			}
		}
	}
}

// changes answers GET /v1/locks with since in its query. The reply has the locks that have
// changed since that revision, or all locks if the revision is not known. changes reports false
// if there are no revisions.
func (d *desk) changes(w http.ResponseWriter, r *door.Request) (bool, error) {
	q := r.URL.Query()
	if q.Get("prefix") != "" || !r.Caller.MayAll(caller.Read, "") {
		return false, nil
	}
	s, err := d.sweeps.get(r.Context())
	if err != nil || s.many {
		return err != nil, err
	}
	revision := uint64(0)
	if server, number, ok := strings.Cut(q.Get("since"), "-"); ok && server == d.sweeps.server {
		if n, err := strconv.ParseUint(number, 10, 64); err == nil && n >= s.oldest && n <= s.revision {
			revision = n
			w.Header().Set(sinceHeader, q.Get("since"))
		}
	}
	w.Header().Set(revisionHeader, d.sweeps.server+"-"+strconv.FormatUint(s.revision, 10))
	w.Header().Set(nextHeader, strconv.FormatInt(s.pause(time.Now()).Milliseconds(), 10))
	return true, door.Lines(w, r, s.since(revision), wire.LockOf)
}
