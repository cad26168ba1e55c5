package form

import "github.com/holdfast-locks/holdfast/driver"

// Nothing is the request of Capable and of streams, and the reply of methods that return
// an error only.
type Nothing struct{}

// Name is the request of Inspect, Breaks, Recall, Forget, DescribeRecord and History.
type Name struct {
	Name string `json:"name"`
}

// Prefix is the request of List and ListRecords.
type Prefix struct {
	Prefix string `json:"prefix"`
}

// Proof is the request of Peek.
type Proof struct {
	Proof driver.Proof `json:"proof"`
}

// Digest is the request of Revoke.
type Digest struct {
	Digest driver.Digest `json:"digest"`
}

// Limit is the request of Prune.
type Limit struct {
	Limit int `json:"limit"`
}

// A Batch is the request of AcquireAll, Extend and Refresh.
type Batch[Req any] struct {
	Requests []Req `json:"requests"`
}

// Capabilities are the reply to Capable.
type Capabilities struct {
	driver.Capabilities
	SelfPruning bool `json:"self_pruning,omitzero"` // see driver.Vault
}

// A Reply is the reply to Acquire. Route is the route of the name, if the store has routes.
type Reply struct {
	driver.AcquireReply
	Route uint32 `json:"route,omitzero"`
}

// Renewed is the reply to Extend, in the order of the requests.
type Renewed struct {
	Errors []*Error `json:"errors"`           // null: the lease was lengthened
	Routes []uint32 `json:"routes,omitempty"` // of the names, if the batch had several
}

// Refreshed is the reply to Refresh, in the order of the requests.
type Refreshed struct {
	Replies []RefreshReply `json:"replies"`
	Routes  []uint32       `json:"routes,omitempty"`
}

// A RefreshReply has either a reply or an error.
type RefreshReply struct {
	*driver.AcquireReply
	Error *Error `json:"error,omitempty"`
}

// Found is the reply to Forget.
type Found struct {
	Found bool `json:"found"`
}

// A Record is the reply to Recall.
type Record struct {
	Found
	driver.Record
}

// A RecordInfo is the reply to DescribeRecord.
type RecordInfo struct {
	Found
	driver.RecordInfo
}

// Pruned is the reply to Prune.
type Pruned struct {
	Deleted int  `json:"deleted"`
	More    bool `json:"more,omitzero"`
}

// A Diagnosis is the reply to Diagnose.
type Diagnosis struct {
	Findings []Finding `json:"findings,omitempty"`
}

// A Finding is a driver.Finding with its error.
type Finding struct {
	driver.Finding
	Error *Error `json:"error,omitempty"`
}

// A Line is one line of a list. The last line has End or Error: a list without such a line was
// cut off.
type Line struct {
	Lock   *Lock              `json:"lock,omitempty"`
	Record *driver.RecordInfo `json:"record,omitempty"`
	End    bool               `json:"end,omitzero"`
	Error  *Error             `json:"error,omitempty"`
}
