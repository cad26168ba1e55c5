package redislock

import (
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// The functions of this file read the replies that the headers of the scripts
// describe. A reply of another form leaves the outcome unknown.

func parseAcquire(reply any, minToken uint64) (driver.AcquireReply, error) {
	items, _ := reply.([]any)
	if len(items) == 0 {
		return driver.AcquireReply{}, errMalformed("acquire", reply)
	}
	outcome, ok := items[0].(int64)
	if !ok {
		return driver.AcquireReply{}, errMalformed("acquire", reply)
	}
	switch {
	case outcome == 1 && len(items) == 2:
		token, ok := items[1].(int64)
		if !ok || token < 1 || uint64(token) > driver.MaxToken {
			return driver.AcquireReply{}, errMalformed("acquire", reply)
		}
		return driver.AcquireReply{Outcome: driver.Granted, Token: uint64(token)}, nil
	case outcome == 0 && len(items) == 3:
		left, ok1 := items[1].(int64)
		holder, ok2 := items[2].(string)
		if !ok1 || !ok2 {
			return driver.AcquireReply{}, errMalformed("acquire", reply)
		}
		return driver.AcquireReply{Outcome: driver.Held, InTheWay: driver.InTheWay{
			Holder: parseHolder(holder), ExpiresIn: expiresIn(left),
		}}, nil
	case outcome == -1:
		return driver.AcquireReply{Outcome: driver.Cancelled}, nil
	case outcome == -2:
		return driver.AcquireReply{}, fmt.Errorf("%w MinToken %d: it is more than %s ahead of the server's clock",
			driver.ErrInvalid, minToken, driver.MaxTokenLead)
	case outcome == -3:
		return driver.AcquireReply{}, errFence()
	}
	return driver.AcquireReply{}, errMalformed("acquire", reply)
}

// errFence reports a last token that is not a number below MaxToken.
func errFence() error {
	return fmt.Errorf("%w: the key of its last token holds no usable token: another program wrote to it; delete it, and acquire with a MinToken that the resource has seen",
		driver.ErrKindMismatch)
}

// expiresIn turns the milliseconds that a key has left into a duration. A key
// that has none left still lives for a part of a millisecond.
func expiresIn(ms int64) time.Duration {
	if ms < 0 || ms > maxTTL.Milliseconds() {
		return driver.Never
	}
	return time.Duration(max(ms, 1)) * time.Millisecond
}

// parseExtend fills errs, one per request.
func parseExtend(reply any, errs []error) error {
	items, _ := reply.([]any)
	if len(items) != len(errs) {
		return errMalformed("extend", reply)
	}
	for i, item := range items {
		switch item := item.(type) {
		case string:
			errs[i] = serverError(item)
		case int64:
			switch item {
			case 1:
			case 0:
				errs[i] = driver.ErrLost
			default:
				errs[i] = errMalformed("extend", item)
			}
		default:
			errs[i] = errMalformed("extend", item)
		}
	}
	return nil
}

func parseRelease(reply any) error {
	items, _ := reply.([]any)
	if len(items) != 2 {
		return errMalformed("release", reply)
	}
	found, ok1 := items[0].(int64)
	refused, ok2 := items[1].(string)
	switch {
	case !ok1 || !ok2 || found < 0 || found > 1:
		return errMalformed("release", reply)
	case refused != "" && found == 1:
		// Not one of the definite errors: the lease was ended.
		return fmt.Errorf("released, but the server did not remember the cancel: it says %q", refused)
	case refused != "":
		return serverError(refused)
	case found == 0:
		return driver.ErrLost
	}
	return nil
}

func parseInspect(name string, reply any) (driver.Lock, error) {
	if text, ok := reply.(string); ok {
		return driver.Lock{}, serverError(text)
	}
	items, _ := reply.([]any)
	if len(items) != 3 {
		return driver.Lock{}, errMalformed("inspect", reply)
	}
	left, ok1 := items[0].(int64)
	text, ok2 := items[1].(string)
	last, ok3 := items[2].(string)
	if !ok1 || !ok2 || !ok3 {
		return driver.Lock{}, errMalformed("inspect", reply)
	}
	lock := driver.Lock{Name: name}
	if last != "" {
		token, err := parseToken(last)
		if err != nil {
			return driver.Lock{}, errFence()
		}
		lock.LastToken = token
	}
	const free = -2
	if left != free {
		lock.Holders = []driver.Holding{holding(text, left)}
	}
	return lock, nil
}

// holding describes the lease that a lock's value and its expiry say.
func holding(text string, left int64) driver.Holding {
	v, ok := parseValue(text)
	if !ok {
		return driver.Holding{ExpiresIn: expiresIn(left)}
	}
	if ttl := v.ttl.Milliseconds(); left < 0 || left > ttl {
		left = ttl // as the next acquire will clamp it
	}
	return driver.Holding{LeaseID: v.id, Token: v.token, Holder: v.holder, ExpiresIn: expiresIn(left), Released: v.released}
}
