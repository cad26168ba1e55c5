package otellock

import (
	"github.com/holdfast-locks/holdfast"
	"go.opentelemetry.io/otel/attribute"
)

// The attributes of spans, of their events and links, and of metrics, in addition to the
// label of each counter, such as holdfast.result. docs/metrics.md lists which occurs when.
// The lease ID is never among them: a client that knows it can release the lease.
const (
	keyName     = attribute.Key("holdfast.name")
	keyMode     = attribute.Key("holdfast.mode")
	keyLimit    = attribute.Key("holdfast.limit")
	keyPermits  = attribute.Key("holdfast.permits")
	keyOnce     = attribute.Key("holdfast.once")
	keyToken    = attribute.Key("holdfast.token")
	keyResult   = attribute.Key("holdfast.result")
	keyAttempts = attribute.Key("holdfast.attempts")
	keyWaited   = attribute.Key("holdfast.waited")
	keyPlace    = attribute.Key("holdfast.place")
	keyQueue    = attribute.Key("holdfast.queue")
	keyHolder   = attribute.Key("holdfast.holder")
	keyRenewals = attribute.Key("holdfast.renewals")
	keyEnd      = attribute.Key("holdfast.end")
	keyCause    = attribute.Key("holdfast.cause")
	keyAuthor   = attribute.Key("holdfast.author")
	keyReason   = attribute.Key("holdfast.reason")
	keyTook     = attribute.Key("holdfast.took")
	keyError    = attribute.Key("holdfast.error")
)

// ofLock returns the attributes of the lock, which both spans have.
func (s *spans) ofLock(name string, mode holdfast.Mode) []attribute.KeyValue {
	all := []attribute.KeyValue{keyMode.String(mode.Kind())}
	if label := s.name(name); label != "" {
		all = append(all, keyName.String(label))
	}
	if mode.Limit() != 0 {
		all = append(all, keyLimit.Int(mode.Limit()), keyPermits.Int(mode.Permits()))
	}
	return all
}

// queued returns the attributes of the queue and of the holder in an event.
func queued(e holdfast.Event) (all []attribute.KeyValue) {
	if e.Place > 0 {
		all = append(all, keyPlace.Int(e.Place), keyQueue.Int(e.Queue))
	}
	if e.Holder.Host != "" || e.Holder.Label != "" || e.Holder.User != "" {
		all = append(all, keyHolder.String(e.Holder.String()))
	}
	return append(all, failure(e)...)
}

// failure returns the attributes of the error of an event, if it has one.
func failure(e holdfast.Event) (all []attribute.KeyValue) {
	if e.Err != nil {
		all = append(all, keyError.String(e.Err.Error()))
	}
	return all
}
