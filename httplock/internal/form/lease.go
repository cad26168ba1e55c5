package form

import (
	"errors"

	"github.com/holdfast-locks/holdfast/driver"
)

// A Request is one of Acquire, or one of several of AcquireAll.
type Request struct {
	Name      string         `json:"name"`
	LeaseID   driver.LeaseID `json:"lease_id"`
	Mode      driver.Mode    `json:"mode,omitzero"`
	Limit     int            `json:"limit,omitempty"`
	Permits   int            `json:"permits,omitempty"`
	TTL       Span           `json:"ttl_us"`
	Holder    driver.Holder  `json:"holder"`
	MinToken  uint64         `json:"min_token,omitempty"`
	Replicas  int            `json:"replicas,omitempty"`
	Once      bool           `json:"once,omitempty"`
	Queue     bool           `json:"queue,omitempty"`
	WaiterTTL Span           `json:"waiter_ttl_us,omitempty"`
}

// RequestOf returns the form of an acquire.
func RequestOf(r driver.AcquireRequest) Request {
	return Request{
		Name: r.Name, LeaseID: r.LeaseID, Mode: r.Mode, Limit: r.Limit, Permits: r.Permits, TTL: SpanOf(r.TTL), Holder: r.Holder,
		MinToken: r.MinToken, Replicas: r.Replicas, Once: r.Once, Queue: r.Queue, WaiterTTL: SpanOf(r.WaiterTTL),
	}
}

// Driver returns what the form is of.
func (r Request) Driver() driver.AcquireRequest {
	return driver.AcquireRequest{
		Name: r.Name, LeaseID: r.LeaseID, Mode: r.Mode, Limit: r.Limit, Permits: r.Permits, TTL: r.TTL.Duration(), Holder: r.Holder,
		MinToken: r.MinToken, Replicas: r.Replicas, Once: r.Once, Queue: r.Queue, WaiterTTL: r.WaiterTTL.Duration(),
	}
}

// Requests are those of AcquireAll.
type Requests struct {
	Requests []Request `json:"requests"`
}

// A Reply is the answer to Acquire, and to one request of Refresh.
type Reply struct {
	Outcome Outcome  `json:"outcome"`
	Token   uint64   `json:"token,omitempty"`
	Acked   int      `json:"acked,omitempty"`
	Record  []byte   `json:"record,omitempty"`
	Blocker *Blocker `json:"blocker,omitempty"` // nil unless held

	// Route is that of the name in the server's store, if it has routes.
	Route uint32 `json:"route,omitempty"`
}

// ReplyOf returns the form of an answer.
func ReplyOf(r driver.AcquireReply) Reply {
	return Reply{Outcome: Outcome(r.Outcome), Token: r.Token, Acked: r.Acked, Record: r.Record, Blocker: blockerOf(r.Outcome, r.Blocker)}
}

// Driver returns what the form is of.
func (r Reply) Driver() driver.AcquireReply {
	reply := driver.AcquireReply{Outcome: driver.Outcome(r.Outcome), Token: r.Token, Acked: r.Acked, Record: r.Record}
	if r.Blocker != nil {
		reply.Blocker = r.Blocker.driver()
	}
	if reply.Outcome == driver.Recorded && reply.Record == nil {
		reply.Record = []byte{} // which is left out if it is empty
	}
	return reply
}

// AllReply is the answer to AcquireAll.
type AllReply struct {
	Outcome Outcome  `json:"outcome"`
	Tokens  []uint64 `json:"tokens,omitempty"`
	Refused int      `json:"refused,omitempty"`
	Blocker *Blocker `json:"blocker,omitempty"`
}

// AllReplyOf returns the form of an answer.
func AllReplyOf(r driver.AllReply) AllReply {
	return AllReply{Outcome: Outcome(r.Outcome), Tokens: r.Tokens, Refused: r.Refused, Blocker: blockerOf(r.Outcome, r.Blocker)}
}

// Driver returns what the form is of.
func (r AllReply) Driver() driver.AllReply {
	reply := driver.AllReply{Outcome: driver.Outcome(r.Outcome), Tokens: r.Tokens, Refused: r.Refused}
	if r.Blocker != nil {
		reply.Blocker = r.Blocker.driver()
	}
	return reply
}

// A Blocker is what is in the way.
type Blocker struct {
	Holder    driver.Holder `json:"holder,omitzero"`
	Since     Span          `json:"since_us,omitempty"`
	ExpiresIn Span          `json:"expires_in_us,omitempty"` // -1: never
	Released  bool          `json:"released,omitempty"`
	Place     int           `json:"place,omitempty"`
	Queue     int           `json:"queue,omitempty"`
	Foreign   bool          `json:"foreign,omitempty"`
}

func blockerOf(outcome driver.Outcome, b driver.Blocker) *Blocker {
	if outcome != driver.Held {
		return nil
	}
	return &Blocker{
		Holder: b.Holder, Since: SpanOf(b.Since), ExpiresIn: SpanOf(b.ExpiresIn), Released: b.Released,
		Place: b.Place, Queue: b.Queue, Foreign: b.Foreign,
	}
}

func (b *Blocker) driver() driver.Blocker {
	return driver.Blocker{
		Holder: b.Holder, Since: b.Since.Duration(), ExpiresIn: b.ExpiresIn.Duration(), Released: b.Released,
		Place: b.Place, Queue: b.Queue, Foreign: b.Foreign,
	}
}

// A Renewal is one request of Extend, or of Refresh. The span is the TTL of the lease,
// or the waiter TTL of the place.
type Renewal struct {
	Name    string         `json:"name"`
	LeaseID driver.LeaseID `json:"lease_id"`
	TTL     Span           `json:"ttl_us"`
}

// Renewals are those of one batch.
type Renewals struct {
	Requests []Renewal `json:"requests"`
}

// Renewed is the answer to Extend, in the order of the requests.
type Renewed struct {
	Errors []*Error `json:"errors"`           // null: it was lengthened
	Routes []uint32 `json:"routes,omitempty"` // of the names, if the batch had several
}

// Refreshed is the answer to Refresh, in the order of the requests.
type Refreshed struct {
	Replies []RefreshReply `json:"replies"`
	Routes  []uint32       `json:"routes,omitempty"`
}

// A RefreshReply is the answer about one place.
type RefreshReply struct {
	*Reply
	Error *Error `json:"error,omitempty"` // instead of the rest
}

// RefreshReplyOf returns the form of an answer.
func RefreshReplyOf(r driver.RefreshReply) RefreshReply {
	if r.Err != nil {
		return RefreshReply{Error: ErrorOf(r.Err)}
	}
	reply := ReplyOf(r.AcquireReply)
	return RefreshReply{Reply: &reply}
}

// Driver returns what the form is of.
func (r RefreshReply) Driver() driver.RefreshReply {
	switch {
	case r.Error != nil:
		return driver.RefreshReply{Err: r.Error.Err()}
	case r.Reply == nil:
		return driver.RefreshReply{Err: errNothing}
	}
	return driver.RefreshReply{AcquireReply: r.Reply.Driver()}
}

var errNothing = errors.New("the server's answer has nothing about the place")

// An End is the request of Release and Downgrade.
type End struct {
	Name    string         `json:"name"`
	LeaseID driver.LeaseID `json:"lease_id"`
	KeepFor Span           `json:"keep_for_us,omitempty"`
	Cancel  bool           `json:"cancel,omitempty"`
	Lost    bool           `json:"lost,omitempty"`
}

// EndOf returns the form of a release.
func EndOf(r driver.ReleaseRequest) End {
	return End{Name: r.Name, LeaseID: r.LeaseID, KeepFor: SpanOf(r.KeepFor), Cancel: r.Cancel, Lost: r.Lost}
}

// Driver returns what the form is of.
func (e End) Driver() driver.ReleaseRequest {
	return driver.ReleaseRequest{Name: e.Name, LeaseID: e.LeaseID, KeepFor: e.KeepFor.Duration(), Cancel: e.Cancel, Lost: e.Lost}
}
