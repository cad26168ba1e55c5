package form

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

const (
	shortest = 10 * time.Millisecond
	longest  = 30 * 24 * time.Hour   // of leases and places
	ages     = 3653 * 24 * time.Hour // of records and one-time tokens

	maxHolder = 8 << 10 // bytes of JSON
)

// Check validates a request and returns the lock name in it, or "". It checks what package
// driver guarantees to engines, because over HTTP the sender can be anyone. Its errors wrap
// driver.ErrInvalid. extendBatch is how many requests a batch of Extend may have.
func Check(req any, extendBatch int) (name string, err error) {
	switch r := req.(type) {
	case *Name:
		return r.Name, driver.CheckName(r.Name)
	case *driver.AcquireRequest:
		return r.Name, checkAcquire(r)
	case *driver.ReleaseRequest:
		return r.Name, cmp.Or(checkLease(r.Name, r.LeaseID), checkKeepFor(r.KeepFor))
	case *driver.DowngradeRequest:
		return r.Name, checkLease(r.Name, r.LeaseID)
	case *driver.BreakRequest:
		return r.Name, cmp.Or(checkRange("token", r.Token, 1, driver.MaxToken), driver.CheckName(r.Name), checkID("id", r.ID), driver.CheckBreak(r.Author, r.Reason))
	case *driver.CompleteRequest:
		return r.Name, cmp.Or(checkBytes("record", r.Record, driver.MaxRecord), checkLease(r.Name, r.LeaseID), checkSpan("retention_ns", r.Retention, ages))
	case *driver.DepositRequest:
		return "", cmp.Or(checkBytes("payload", r.Payload, driver.MaxPayload), checkSum("digest", r.Digest), checkID("by", r.By),
			checkSpan("ttl_ns", r.TTL, ages), checkSpan("memory_ns", r.Memory, ages))
	case *driver.RedeemRequest:
		return "", cmp.Or(checkSum("proof", r.Proof), checkID("by", r.By))
	case *driver.DiagnoseRequest:
		return "", checkSpan("ttl_ns", r.TTL, longest)
	case *Prefix:
		if r.Prefix == "" { // the prefix of every name
			return "", nil
		}
		return r.Prefix, driver.CheckName(r.Prefix)
	case *Proof:
		return "", checkSum("proof", r.Proof)
	case *Digest:
		return "", checkSum("digest", r.Digest)
	case *Limit:
		return "", checkRange("limit", r.Limit, 1, driver.MaxPrune)
	case *Batch[driver.AcquireRequest]:
		return "", cmp.Or(checkBatch(r.Requests, driver.MaxBatch, checkOfAll), checkNames(r.Requests))
	case *Batch[driver.ExtendRequest]:
		return "", checkBatch(r.Requests, extendBatch, checkExtend)
	case *Batch[driver.RefreshRequest]:
		return "", checkBatch(r.Requests, driver.MaxBatch, checkRefresh)
	}
	return "", nil
}

func checkAcquire(r *driver.AcquireRequest) error {
	return cmp.Or(
		checkLease(r.Name, r.LeaseID), checkSpan("ttl_ns", r.TTL, longest), r.Mode.Check(),
		checkRange("token", r.MinToken, 0, driver.MaxToken), checkRange("replicas", r.Replicas, 0, math.MaxInt32), checkWait(r), checkHolder(r.Holder),
	)
}

func checkWait(r *driver.AcquireRequest) error {
	switch {
	case r.Queue:
		return checkSpan("waiter_ttl_ns", r.WaiterTTL, longest)
	case r.WaiterTTL != 0:
		return invalid("waiter_ttl_ns: only a request with queue has it")
	}
	return nil
}

func checkOfAll(r *driver.AcquireRequest) error {
	if r.Queue || r.Once {
		return invalid("a request for several locks has neither queue nor once")
	}
	return checkAcquire(r)
}

func checkNames(reqs []driver.AcquireRequest) error {
	seen := make(map[string]bool, len(reqs))
	for i, r := range reqs {
		if seen[r.Name] {
			return invalid("request %d: another request has its name", i)
		}
		seen[r.Name] = true
	}
	return nil
}

func checkExtend(r *driver.ExtendRequest) error {
	return cmp.Or(checkLease(r.Name, r.LeaseID), checkRange("token", r.Token, 0, driver.MaxToken), checkSpan("ttl_ns", r.TTL, longest))
}

func checkRefresh(r *driver.RefreshRequest) error {
	if r.WaiterTTL == 0 {
		return checkLease(r.Name, r.LeaseID)
	}
	return cmp.Or(checkLease(r.Name, r.LeaseID), checkSpan("waiter_ttl_ns", r.WaiterTTL, longest))
}

func checkBatch[Req any](reqs []Req, most int, check func(*Req) error) error {
	if err := checkRange("requests", len(reqs), 1, most); err != nil {
		return err
	}
	for i := range reqs {
		if err := check(&reqs[i]); err != nil {
			return fmt.Errorf("request %d: %w", i, err)
		}
	}
	return nil
}

func checkLease(name string, id lockinfo.LeaseID) error {
	return cmp.Or(driver.CheckName(name), checkID("lease_id", id))
}

func checkID(what string, id lockinfo.LeaseID) error { return checkHex(what, id, 32) }

func checkSum(what string, sum interface{ Valid() bool }) error { return checkHex(what, sum, 64) }

func checkHex(what string, v interface{ Valid() bool }, digits int) error {
	if !v.Valid() {
		return invalid("%s: want %d hexadecimal digits in lower case", what, digits)
	}
	return nil
}

func checkRange[N cmp.Ordered](what string, n, least, most N) error {
	if n < least || n > most {
		return invalid("%s: want %v to %v", what, least, most)
	}
	return nil
}

func checkBytes(what string, b []byte, most int) error {
	if len(b) > most {
		return invalid("%s: it has %d bytes, the limit is %d", what, len(b), most)
	}
	return nil
}

func checkSpan(what string, d, longest time.Duration) error {
	switch {
	case d < shortest || d > longest:
		return invalid("%s: want %d to %d", what, shortest.Nanoseconds(), longest.Nanoseconds())
	case d%time.Millisecond != 0:
		return invalid("%s: want whole milliseconds", what)
	}
	return nil
}

func checkKeepFor(d time.Duration) error {
	if d < 0 || d > 2*longest || d%time.Millisecond != 0 {
		return invalid("keep_for_ns: want whole milliseconds, %d at most", (2 * longest).Nanoseconds())
	}
	return nil
}

// checkHolder bounds the holder, which the store keeps with each lease.
func checkHolder(h lockinfo.Holder) error {
	if h.PID < 0 || h.PID > driver.MaxPID {
		return invalid("holder: its pid is %d, want 0 to %d", h.PID, driver.MaxPID)
	}
	length := len(h.Host) + len(h.User) + len(h.Program) + len(h.Label) + len(h.Reason) + len(h.Fingerprint) + len(h.Caller)
	if length <= maxHolder/8 && len(h.Labels) == 0 {
		return nil // even if every byte is escaped
	}
	if text, err := json.Marshal(h); err != nil || len(text) > maxHolder {
		return invalid("holder: its JSON has more than %d bytes", maxHolder)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w %s", driver.ErrInvalid, fmt.Sprintf(format, args...))
}
