package form

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// What package driver guarantees to engines of requests is the duty of whoever sends
// them. Over the wire that can be anybody, so the server looks. Each Check returns an
// error that wraps driver.ErrInvalid.

const (
	shortest = 10 * time.Millisecond
	longest  = 30 * 24 * time.Hour   // of leases and places
	ages     = 3653 * 24 * time.Hour // of what is remembered

	maxHolder = 8 << 10 // bytes of JSON
)

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w %s", driver.ErrInvalid, fmt.Sprintf(format, args...))
}

func checkSpan(what string, s Span, longest time.Duration) error {
	switch d := s.Duration(); {
	case d < shortest || s > SpanOf(longest):
		return invalid("%s: want %d to %d", what, SpanOf(shortest), SpanOf(longest))
	case d%time.Millisecond != 0:
		return invalid("%s: want whole milliseconds", what)
	}
	return nil
}

func checkID(what string, id driver.LeaseID) error {
	if !id.Valid() {
		return invalid("%s: want 32 hexadecimal digits in lower case", what)
	}
	return nil
}

// Check returns an error if no engine may be asked for this.
func (r Request) Check() error {
	return cmp.Or(
		driver.CheckName(r.Name), checkID("lease_id", r.LeaseID), checkSpan("ttl_us", r.TTL, longest),
		r.checkMode(), r.checkPlace(), checkHolder(r.Holder),
	)
}

func (r Request) checkMode() error {
	switch {
	case r.Mode != driver.Semaphore && (r.Limit != 0 || r.Permits != 0):
		return invalid("limit and permits: they are for mode semaphore only")
	case r.Mode == driver.Semaphore && (r.Limit < 1 || r.Limit > driver.MaxLimit):
		return invalid("limit: want 1 to %d", driver.MaxLimit)
	case r.Mode == driver.Semaphore && (r.Permits < 1 || r.Permits > r.Limit):
		return invalid("permits: want 1 to the limit")
	case r.MinToken > driver.MaxToken:
		return invalid("min_token: no token is greater")
	case r.Replicas < 0:
		return invalid("replicas: want 0 or more")
	}
	return nil
}

func (r Request) checkPlace() error {
	switch {
	case r.Queue:
		return checkSpan("waiter_ttl_us", r.WaiterTTL, longest)
	case r.WaiterTTL != 0:
		return invalid("waiter_ttl_us: it is for requests with queue only")
	}
	return nil
}

// checkHolder bounds what the store keeps with every lease.
func checkHolder(h driver.Holder) error {
	length := len(h.Host) + len(h.User) + len(h.Program) + len(h.Label) + len(h.Reason) + len(h.Fingerprint)
	if length <= maxHolder/8 && len(h.Labels) == 0 {
		return nil // however it is written down
	}
	if text, err := json.Marshal(h); err != nil || len(text) > maxHolder {
		return invalid("holder: its JSON has more than %d bytes", maxHolder)
	}
	return nil
}

// Check returns an error if no engine may be asked for this.
func (r Requests) Check() error {
	if n := len(r.Requests); n < 1 || n > driver.MaxBatch {
		return invalid("requests: want 1 to %d", driver.MaxBatch)
	}
	names := make(map[string]bool, len(r.Requests))
	for i, one := range r.Requests {
		switch err := one.Check(); {
		case err != nil:
			return fmt.Errorf("request %d: %w", i, err)
		case one.Queue || one.Once:
			return invalid("request %d: queue and once are not for several at once", i)
		case names[one.Name]:
			return invalid("request %d: its name is there twice", i)
		}
		names[one.Name] = true
	}
	return nil
}

// Check returns an error if no engine may be asked for this.
func (r Renewals) Check(most int) error {
	if n := len(r.Requests); n < 1 || n > most {
		return invalid("requests: want 1 to %d", most)
	}
	for i, one := range r.Requests {
		if err := cmp.Or(driver.CheckName(one.Name), checkID("lease_id", one.LeaseID), checkSpan("ttl_us", one.TTL, longest)); err != nil {
			return fmt.Errorf("request %d: %w", i, err)
		}
	}
	return nil
}

// Check returns an error if no engine may be asked for this.
func (e End) Check() error {
	if e.KeepFor < 0 || e.KeepFor > SpanOf(2*longest) || e.KeepFor%1000 != 0 {
		return invalid("keep_for_us: want whole milliseconds, and no more than %d", SpanOf(2*longest))
	}
	return cmp.Or(driver.CheckName(e.Name), checkID("lease_id", e.LeaseID))
}

// Check returns an error if no engine may be asked for this.
func (n Name) Check() error { return driver.CheckName(n.Name) }

// Check returns an error if no engine may be asked for this. The empty prefix is that of
// all names.
func (p Prefix) Check() error {
	if p.Prefix == "" {
		return nil
	}
	return driver.CheckName(p.Prefix)
}

// Check returns an error if no engine may be asked for this.
func (b BreakRequest) Check() error {
	if b.Token < 1 || b.Token > driver.MaxToken {
		return invalid("token: want 1 to %d", driver.MaxToken)
	}
	return cmp.Or(driver.CheckName(b.Name), checkID("id", b.ID), driver.CheckBreak(b.Author, b.Reason))
}

// Check returns an error if no engine may be asked for this.
func (c CompleteRequest) Check() error {
	if len(c.Record) > driver.MaxRecord {
		return invalid("record: it has %d bytes, the limit is %d", len(c.Record), driver.MaxRecord)
	}
	return cmp.Or(driver.CheckName(c.Name), checkID("lease_id", c.LeaseID), checkSpan("retention_us", c.Retention, ages))
}

// Check returns an error if no engine may be asked for this.
func (d DepositRequest) Check() error {
	if len(d.Payload) > driver.MaxPayload {
		return invalid("payload: it has %d bytes, the limit is %d", len(d.Payload), driver.MaxPayload)
	}
	return cmp.Or(checkDigest(d.Digest), checkID("by", d.By), checkSpan("ttl_us", d.TTL, ages), checkSpan("memory_us", d.Memory, ages))
}

// Check returns an error if no engine may be asked for this; redeem says that By is
// needed.
func (d DigestRequest) Check(redeem bool) error {
	if redeem {
		return cmp.Or(checkDigest(d.Digest), checkID("by", d.By))
	}
	return checkDigest(d.Digest)
}

func checkDigest(d driver.Digest) error {
	if len(d) != 64 || strings.Trim(string(d), "0123456789abcdef") != "" {
		return invalid("digest: want 64 hexadecimal digits in lower case")
	}
	return nil
}

// Check returns an error if no engine may be asked for this.
func (p PruneRequest) Check() error {
	if p.Limit < 1 || p.Limit > driver.MaxPrune {
		return invalid("limit: want 1 to %d", driver.MaxPrune)
	}
	return nil
}

// Check returns an error if no engine may be asked for this.
func (d DiagnoseRequest) Check() error { return checkSpan("ttl_us", d.TTL, longest) }
