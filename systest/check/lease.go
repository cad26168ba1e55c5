package check

import (
	"time"

	"github.com/holdfast-locks/holdfast"
)

// SpanOf returns a span that begins now.
func SpanOf(l *holdfast.Lease) Span {
	return Span{Name: l.Name(), LeaseID: l.ID(), Token: l.Token(), Mode: l.Mode(), Start: time.Now().UnixNano()}
}

// ValidUntil returns the current time, or the end of the lease if that has passed.
func ValidUntil(l *holdfast.Lease) int64 {
	now := time.Now()
	if l.Valid() {
		return now.UnixNano()
	}
	return now.Add(min(0, time.Until(l.Deadline()))).UnixNano()
}

// During records a span of a lease of this process. The span begins now, and ends when end is
// called.
func (h *Spans) During(l *holdfast.Lease) (end func()) {
	s := SpanOf(l)
	h.Note(nil, s)
	return func() {
		s.End = ValidUntil(l)
		h.Note(nil, s)
	}
}
