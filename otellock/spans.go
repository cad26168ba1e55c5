package otellock

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/tally"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/observe"
)

// The names of the spans.
const (
	spanAcquire = "lock.acquire"
	spanHold    = "lock.hold"
)

// spans has the open spans.
type spans struct {
	tracer   trace.Tracer
	name     func(string) string
	renewals bool

	mu     sync.Mutex
	closed bool
	waits  map[holdfast.LeaseID]*wait // by Event.Key
	holds  map[turn]*hold
}

// A turn names a lease. Leases of one cohort have one lease ID, see holdfast.Options.Cohorts.
type turn struct {
	id    holdfast.LeaseID
	token uint64
}

// A wait is an open span lock.acquire.
type wait struct {
	span   trace.Span
	linked string // the label TraceParent of the holder of the last link
}

// A hold is an open span lock.hold.
type hold struct {
	span     trace.Span
	granted  bool // the event of the grant has arrived; else WithHold began the span
	renewals int
	failing  bool // the last renewal failed
}

func newSpans(opts Options) *spans {
	s := &spans{
		tracer: opts.TracerProvider.Tracer(scope), name: opts.TraceName, renewals: opts.Renewals,
		waits: map[holdfast.LeaseID]*wait{}, holds: map[turn]*hold{},
	}
	if s.name == nil {
		s.name = func(name string) string { return name }
	}
	return s
}

// observe begins and ends spans, and adds events to open spans.
func (s *spans) observe(e holdfast.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	switch e.Kind {
	case observe.Waiting:
		w := s.beginAcquire(e)
		w.span.AddEvent("waiting", trace.WithTimestamp(e.Time), trace.WithAttributes(queued(e)...))
		w.link(blocker(e))
		s.waits[e.Key] = w
	case observe.PlaceChanged, observe.HandedOver, observe.OutageBegan, observe.OutageEnded:
		if w := s.waits[e.Key]; w != nil {
			w.span.AddEvent(text[e.Kind], trace.WithTimestamp(e.Time), trace.WithAttributes(queued(e)...))
			w.link(e.Holder)
		}
	case observe.Acquired:
		s.endAcquire(e, "acquired")
		s.beginHold(e)
	case observe.Refused:
		s.endAcquire(e, tally.Refusal(e.Err))
	case observe.OnceReplayed:
		s.endAcquire(e, "replayed")
	default:
		if h := s.holds[turn{e.LeaseID, e.Token}]; h != nil {
			s.during(h, e)
		}
	}
}

// text has the names of span events during a wait.
var text = map[observe.Kind]string{
	observe.PlaceChanged: "place changed", observe.HandedOver: "handed over", observe.OutageBegan: "outage began", observe.OutageEnded: "outage ended",
}

// beginAcquire begins the span of an acquire, as of the time when the acquire began.
func (s *spans) beginAcquire(e holdfast.Event) *wait {
	attributes := s.ofLock(e.Name, e.Mode)
	if e.Once {
		attributes = append(attributes, keyOnce.Bool(true))
	}
	_, span := s.tracer.Start(e.Context, spanAcquire, trace.WithTimestamp(e.Time.Add(-e.Waited)), trace.WithAttributes(attributes...))
	return &wait{span: span}
}

// endAcquire ends the span of an acquire. It also begins the span of an acquire that did not
// wait.
func (s *spans) endAcquire(e holdfast.Event, result string) {
	w := s.waits[e.Key]
	if delete(s.waits, e.Key); w == nil {
		w = s.beginAcquire(e)
	}
	w.link(blocker(e))
	w.span.SetAttributes(keyResult.String(result), keyAttempts.Int(e.Attempt), keyWaited.Bool(e.AfterWait))
	if result == "unavailable" || result == "failed" {
		w.span.SetStatus(codes.Error, e.Err.Error())
	}
	w.span.SetAttributes(failure(e)...)
	w.span.End(trace.WithTimestamp(e.Time))
}

// link adds a link to a blocker, unless the last link is to the same one.
func (w *wait) link(to lockinfo.Holder) {
	if parent := to.Labels[TraceParent]; parent != w.linked {
		w.linked = parent
		addLinks(w.span, to)
	}
}

// blocker returns the client that blocks an acquire, or did so last, if the event names it.
func blocker(e holdfast.Event) lockinfo.Holder {
	var held *holdfast.HeldError
	var inProgress *holdfast.InProgressError
	switch {
	case e.Holder.Labels != nil:
	case errors.As(e.Err, &held):
		return held.Holder
	case errors.As(e.Err, &inProgress):
		return inProgress.Holder
	}
	return e.Holder
}

// beginHold begins the span of a lease, unless WithHold did.
func (s *spans) beginHold(e holdfast.Event) {
	h := s.holds[turn{e.LeaseID, e.Token}]
	if h == nil {
		h = &hold{}
		_, h.span = s.tracer.Start(e.Context, spanHold, trace.WithTimestamp(e.Time))
		s.holds[turn{e.LeaseID, e.Token}] = h
	}
	h.granted = true
	h.span.SetAttributes(s.ofLock(e.Name, e.Mode)...)
	h.span.SetAttributes(keyToken.Int64(int64(e.Token))) // below 2^53
	if e.Once {
		h.span.SetAttributes(keyOnce.Bool(true))
	}
	addLinks(h.span, e.Holder)
}

// during adds an event to the span of a lease, or ends it.
func (s *spans) during(h *hold, e holdfast.Event) {
	at := trace.WithTimestamp(e.Time)
	switch e.Kind {
	case observe.Renewed:
		h.renewals++
		if s.renewals || h.failing {
			h.span.AddEvent("renewed", at, trace.WithAttributes(keyTook.Float64(e.Took.Seconds())))
		}
		h.failing = false
	case observe.RenewFailed:
		h.failing = true
		h.span.AddEvent("renewal failed", at, trace.WithAttributes(append(failure(e), keyTook.Float64(e.Took.Seconds()))...))
	case observe.LeaseBroken:
		h.span.AddEvent("broken", at, trace.WithAttributes(keyAuthor.String(e.Author), keyReason.String(e.Reason)))
	case observe.OnceCompleted:
		h.span.AddEvent("once completed", at)
	case observe.OnceFailed:
		h.span.AddEvent("once failed", at, trace.WithAttributes(failure(e)...))
	case observe.Lost:
		cause := tally.LossCause(e.Err)
		h.span.AddEvent("lost", at, trace.WithAttributes(append(failure(e), keyCause.String(cause))...))
		h.span.SetStatus(codes.Error, "lost: "+cause)
		s.endHold(e, h, "lost")
	case observe.Released:
		if e.Err != nil {
			h.span.AddEvent("release unconfirmed", at, trace.WithAttributes(failure(e)...))
		}
		s.endHold(e, h, "released")
	case observe.LeaseLeft:
		s.endHold(e, h, "left")
	}
}

// endHold ends the span of a lease.
func (s *spans) endHold(e holdfast.Event, h *hold, how string) {
	delete(s.holds, turn{e.LeaseID, e.Token})
	h.span.SetAttributes(keyEnd.String(how), keyRenewals.Int(h.renewals))
	h.span.End(trace.WithTimestamp(e.Time))
}

// close ends all open spans.
func (s *spans) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, w := range s.waits {
		w.span.End()
	}
	for _, h := range s.holds {
		h.span.End()
	}
	clear(s.waits)
	clear(s.holds)
}

// WithHold returns ctx with the span lock.hold of its lease, so that what is done under
// the lock becomes a part of that span:
//
//	err := client.Do(ctx, "orders/42", nil, func(ctx context.Context, l *holdfast.Lease) error {
//		ctx = telemetry.WithHold(ctx)
//		…
//	})
//
// It returns ctx unchanged if ctx does not belong to a lease, see
// holdfast.LeaseFromContext, if the lease has ended, or if there are no spans. The client
// of the lease must have the Observer of t.
func (t *Telemetry) WithHold(ctx context.Context) context.Context {
	l, ok := holdfast.LeaseFromContext(ctx)
	if !ok || t.spans == nil {
		return ctx
	}
	return t.spans.withHold(ctx, l)
}

// grantLate is how long the span of an ended lease stays open if the event of its grant has not
// arrived.
const grantLate = 10 * time.Second

// withHold finds the span, or begins it if the event of the grant has not arrived.
func (s *spans) withHold(ctx context.Context, l *holdfast.Lease) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.holds[turn{l.ID(), l.Token()}]
	if h == nil {
		if s.closed || !l.Valid() {
			return ctx
		}
		h = &hold{}
		_, h.span = s.tracer.Start(ctx, spanHold, trace.WithAttributes(s.ofLock(l.Name(), l.Mode())...))
		s.holds[turn{l.ID(), l.Token()}] = h
		context.AfterFunc(l.Context(), func() { s.reap(l, h) })
	}
	return trace.ContextWithSpan(ctx, h.span)
}

// reap ends the span of a lease that has ended without an event: events are
// dropped if an Observer is too slow, and the client may have another Observer.
func (s *spans) reap(l *holdfast.Lease, h *hold) {
	over := time.Now()
	s.mu.Lock()
	granted := h.granted
	s.mu.Unlock()
	if granted {
		return
	}
	time.AfterFunc(grantLate, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.holds[turn{l.ID(), l.Token()}] == h && !h.granted {
			delete(s.holds, turn{l.ID(), l.Token()})
			h.span.End(trace.WithTimestamp(over))
		}
	})
}
