package check

import (
	"time"

	"github.com/holdfast-locks/holdfast"
)

// SpanOf returns a span that begins now.
func SpanOf(l *holdfast.Lease) Span {
	return Span{Name: l.Name(), LeaseID: l.ID(), Token: l.Token(), Mode: l.Mode(), Start: time.Now().UnixNano()}
}

// ValidUntil returns the present time, or when the lease ended.
func ValidUntil(l *holdfast.Lease) int64 {
	now := time.Now()
	if l.Valid() {
		return now.UnixNano()
	}
	return now.Add(min(0, time.Until(l.Deadline()))).UnixNano()
}

// During notes a span that begins now and ends when the function that it
// returns is called. It is for leases of this process.
func (h *Spans) During(l *holdfast.Lease) (end func()) {
	s := SpanOf(l)
	h.Note(nil, s)
	return func() {
		s.End = ValidUntil(l)
		h.Note(nil, s)
	}
}
