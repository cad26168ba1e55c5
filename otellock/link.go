package otellock

import (
	"context"
	"encoding/hex"
	"errors"
	"maps"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// TraceParent is the label of a holder in which Engine stores the span that acquired
// the lock, in the form of W3C's header of that name.
const TraceParent = "traceparent"

// Engine wraps an engine so that the spans of a waiter link to the trace of the
// holder. With each lease the store keeps the trace ID and the span ID of the
// context of the acquire, in the holder's label TraceParent. The spans of
// Telemetry link to that span.
//
// The label is written if the span is sampled, and if the caller has not set one
// of that name. It never changes while an acquire repeats its request. Clients that can
// read the store, or are refused the lock, see it. It costs no request,
// and about 75 bytes with each lease and each place in a queue.
func Engine(engine driver.Engine) driver.Engine { return linked{driver.Forward{Engine: engine}} }

// linked is an engine whose leases name the span that acquired them.
type linked struct{ driver.Forward }

// Acquire implements driver.Engine.
func (l linked) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	req.Holder = marked(ctx, req.Holder)
	return l.Forward.Acquire(ctx, req)
}

// AcquireAll implements driver.AllAcquirer.
func (l linked) AcquireAll(ctx context.Context, reqs []driver.AcquireRequest) (driver.AllReply, error) {
	all := make([]driver.AcquireRequest, len(reqs)) // the caller's slice must not change
	for i, req := range reqs {
		req.Holder = marked(ctx, req.Holder)
		all[i] = req
	}
	return l.Forward.AcquireAll(ctx, all)
}

// marked returns h with the span of ctx.
func marked(ctx context.Context, h lockinfo.Holder) lockinfo.Holder {
	span := trace.SpanContextFromContext(ctx)
	if _, given := h.Labels[TraceParent]; given || !span.IsSampled() || !span.IsValid() {
		return h
	}
	labels := maps.Clone(h.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[TraceParent] = "00-" + span.TraceID().String() + "-" + span.SpanID().String() + "-01"
	h.Labels = labels
	return h
}

// addLinks links span to the span under which h acquired the lock, if the store
// knows it. It checks the label, because any client that can acquire a lock can
// write one.
func addLinks(span trace.Span, h lockinfo.Holder) {
	version, rest, _ := strings.Cut(h.Labels[TraceParent], "-")
	traceID, rest, _ := strings.Cut(rest, "-")
	spanID, flags, _ := strings.Cut(rest, "-")
	if version != "00" || len(flags) != 2 {
		return
	}
	var of trace.SpanContextConfig
	var err1, err2 error
	of.TraceID, err1 = trace.TraceIDFromHex(traceID)
	of.SpanID, err2 = trace.SpanIDFromHex(spanID)
	bits, err3 := hex.DecodeString(flags)
	if errors.Join(err1, err2, err3) != nil {
		return
	}
	of.TraceFlags, of.Remote = trace.TraceFlags(bits[0]), true
	span.AddLink(trace.Link{SpanContext: trace.NewSpanContext(of)})
}
