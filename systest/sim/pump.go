package sim

import (
	"sync"
	"time"
)

// A pump delivers parcels in order, each no earlier than its time. It needs a goroutine only
// while it delivers.
type pump struct {
	blocked func() (wait time.Duration, ever bool) // ever is false if nothing will ever pass

	mu      sync.Mutex // guards the rest
	waiting []parcel
	busy    bool // deliver runs or is going to
}

type parcel struct {
	at time.Time
	do func()
}

// push delivers after delay, but not before the parcels that were pushed earlier.
func (p *pump) push(delay time.Duration, do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = append(p.waiting, parcel{time.Now().Add(delay), do})
	if !p.busy {
		p.busy = true
		time.AfterFunc(delay, p.deliver)
	}
}

// clear drops the parcels under way.
func (p *pump) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = nil
}

func (p *pump) deliver() {
	for {
		next, wait := p.next()
		if next == nil {
			if wait > 0 {
				time.AfterFunc(wait, p.deliver)
			}
			return
		}
		next()
	}
}

// next returns the next parcel if it is due, or else how long to wait. It returns nil and 0 if
// there is no parcel.
func (p *pump) next() (do func(), wait time.Duration) {
	blockedFor, ever := p.blocked()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !ever {
		p.waiting = nil
	}
	if len(p.waiting) == 0 {
		p.busy = false
		return nil, 0
	}
	if wait := max(blockedFor, time.Until(p.waiting[0].at)); wait > 0 {
		return nil, wait
	}
	do = p.waiting[0].do
	p.waiting = p.waiting[1:]
	return do, 0
}
