package form

import (
	"github.com/holdfast-locks/holdfast/driver"
)

// A CompleteRequest is the request of Complete.
type CompleteRequest struct {
	Name      string         `json:"name"`
	LeaseID   driver.LeaseID `json:"lease_id"`
	Record    []byte         `json:"record,omitempty"`
	Retention Span           `json:"retention_us"`
}

// A Record is the reply to Recall.
type Record struct {
	Found     bool   `json:"found"`
	Data      []byte `json:"data,omitempty"`
	ExpiresIn Span   `json:"expires_in_us,omitempty"`
}

// A RecordInfo is the reply to DescribeRecord, and a line of ListRecords.
type RecordInfo struct {
	Found     bool   `json:"found"`
	Name      string `json:"name,omitempty"`
	Head      []byte `json:"head,omitempty"`
	Length    int    `json:"length,omitempty"`
	ExpiresIn Span   `json:"expires_in_us,omitempty"`
}

// RecordInfoOf returns the form of what there is to tell of a record.
func RecordInfoOf(r driver.RecordInfo) RecordInfo {
	return RecordInfo{Found: true, Name: r.Name, Head: r.Head, Length: r.Length, ExpiresIn: SpanOf(r.ExpiresIn)}
}

// Driver returns what the form is of.
func (r RecordInfo) Driver() driver.RecordInfo {
	return driver.RecordInfo{Name: r.Name, Head: r.Head, Length: r.Length, ExpiresIn: r.ExpiresIn.Duration()}
}

// A DepositRequest is the request of Deposit.
type DepositRequest struct {
	Digest  driver.Digest  `json:"digest"`
	By      driver.LeaseID `json:"by"`
	Payload []byte         `json:"payload,omitempty"`
	TTL     Span           `json:"ttl_us"`
	Memory  Span           `json:"memory_us"`
}

// A DigestRequest is the request of Redeem, Peek and Revoke. By is for Redeem only.
type DigestRequest struct {
	Digest driver.Digest  `json:"digest"`
	By     driver.LeaseID `json:"by,omitempty"`
}

// A VaultReply is the reply to Redeem, Peek and Revoke.
type VaultReply struct {
	State     State  `json:"state"`
	Payload   []byte `json:"payload,omitempty"`
	Granted   bool   `json:"granted,omitempty"`
	ExpiresIn Span   `json:"expires_in_us,omitempty"`
}

// VaultReplyOf returns the form of an answer.
func VaultReplyOf(r driver.VaultReply) VaultReply {
	return VaultReply{State: State(r.State), Payload: r.Payload, Granted: r.Granted, ExpiresIn: SpanOf(r.ExpiresIn)}
}

// Driver returns what the form is of.
func (r VaultReply) Driver() driver.VaultReply {
	return driver.VaultReply{State: driver.VaultState(r.State), Payload: r.Payload, Granted: r.Granted, ExpiresIn: r.ExpiresIn.Duration()}
}

// A PruneRequest is the request of Prune.
type PruneRequest struct {
	Limit int `json:"limit"`
}

// A Pruned is the reply to Prune.
type Pruned struct {
	Deleted int  `json:"deleted"`
	More    bool `json:"more,omitempty"`
}
