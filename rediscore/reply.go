package rediscore

import (
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
)

// The functions of this file read the replies that the headers of the scripts
// describe. A reply of another form leaves the outcome unknown.

func parseAcquire(reply any, minToken uint64) (driver.AcquireReply, error) {
	items, _ := reply.([]any)
	if len(items) == 0 {
		return driver.AcquireReply{}, form.Malformed("acquire", reply)
	}
	outcome, ok := items[0].(int64)
	if !ok {
		return driver.AcquireReply{}, form.Malformed("acquire", reply)
	}
	switch {
	case outcome == 1 && len(items) == 2:
		token, ok := items[1].(int64)
		if !ok || token < 1 || uint64(token) > driver.MaxToken {
			return driver.AcquireReply{}, form.Malformed("acquire", reply)
		}
		return driver.AcquireReply{Outcome: driver.Granted, Token: uint64(token)}, nil
	case outcome == 0 && len(items) == 4:
		left, ok1 := items[1].(int64)
		holder, ok2 := items[2].(string)
		place, ok3 := items[3].(int64)
		if !ok1 || !ok2 || !ok3 || place < 0 {
			return driver.AcquireReply{}, form.Malformed("acquire", reply)
		}
		return driver.AcquireReply{Outcome: driver.Held, Blocker: driver.Blocker{
			Holder: form.ReadHolder(holder), ExpiresIn: form.ExpiresIn(left), Place: int(place), Foreign: holder == "",
		}}, nil
	case outcome == 2 && len(items) == 2:
		record, ok := items[1].(string)
		if !ok {
			return driver.AcquireReply{}, form.Malformed("acquire", reply)
		}
		return driver.AcquireReply{Outcome: driver.Recorded, Record: []byte(record)}, nil
	case outcome == -1:
		return driver.AcquireReply{Outcome: driver.Cancelled}, nil
	case outcome == -2:
		return driver.AcquireReply{}, fmt.Errorf("%w MinToken %d: it is more than %s ahead of the server's clock",
			driver.ErrInvalid, minToken, driver.MaxTokenLead)
	case outcome == -3:
		return driver.AcquireReply{}, form.NoLastToken()
	case outcome == -4 && len(items) == 2:
		limit, ok := items[1].(int64)
		if !ok || limit < 0 {
			return driver.AcquireReply{}, form.Malformed("acquire", reply)
		}
		return driver.AcquireReply{}, form.WrongKind(limit)
	}
	return driver.AcquireReply{}, form.Malformed("acquire", reply)
}

// parseAcquireAll reads the reply to reqs.
func parseAcquireAll(reply any, reqs []driver.AcquireRequest) (driver.AllReply, error) {
	items, _ := reply.([]any)
	malformed := form.Malformed("acquire-all", reply)
	if len(items) == 0 {
		return driver.AllReply{}, malformed
	}
	if items[0] == int64(0) && len(items) == 3 {
		i, ok := items[1].(int64)
		if !ok || i < 0 || i >= int64(len(reqs)) {
			return driver.AllReply{}, malformed
		}
		answer, err := parseAcquire(items[2], reqs[i].MinToken)
		if err != nil {
			return driver.AllReply{Refused: int(i)}, acquireAllError(reqs[i], err)
		}
		if answer.Outcome == driver.Granted {
			return driver.AllReply{}, malformed
		}
		return driver.AllReply{Outcome: answer.Outcome, Refused: int(i), Blocker: answer.Blocker}, nil
	}
	if items[0] != int64(1) || len(items) != len(reqs)+1 {
		return driver.AllReply{}, malformed
	}
	all := driver.AllReply{Outcome: driver.Granted}
	for _, item := range items[1:] {
		token, ok := item.(int64)
		if !ok || token < 1 || uint64(token) > driver.MaxToken {
			return driver.AllReply{}, malformed
		}
		all.Tokens = append(all.Tokens, uint64(token))
	}
	return all, nil
}

// parseRefresh reads what refresh.lua says of one place.
func parseRefresh(reply any) (answer driver.RefreshReply) {
	if text, ok := reply.(string); ok {
		answer.Err = ReplyError(text)
		return answer
	}
	if list, ok := reply.([]any); ok && len(list) == 1 && list[0] == int64(-5) {
		answer.Err = driver.ErrLost
		return answer
	}
	answer.AcquireReply, answer.Err = parseAcquire(reply, 0)
	return answer
}

// parseExtend reads what extend.lua says of one lease.
func parseExtend(reply any) error {
	switch reply := reply.(type) {
	case string:
		return ReplyError(reply)
	case int64:
		switch reply {
		case 1:
			return nil
		case 0:
			return driver.ErrLost
		}
	}
	return form.Malformed("extend", reply)
}

// A released is what the calls of release.lua for one request have said.
type released struct {
	ended   bool   // the lease
	refused string // why the cancel is not remembered
	more    bool   // there is more to do
}

// parse adds another reply.
func (r *released) parse(reply any) error {
	items, _ := reply.([]any)
	if len(items) != 3 {
		return form.Malformed("release", reply)
	}
	found, ok1 := items[0].(int64)
	refused, ok2 := items[1].(string)
	more, ok3 := items[2].(int64)
	if !ok1 || !ok2 || !ok3 || found < 0 || found > 1 || more < 0 || more > 1 {
		return form.Malformed("release", reply)
	}
	r.ended, r.refused, r.more = r.ended || found == 1, refused, more == 1
	return nil
}

func (r *released) err() error {
	switch {
	case r.refused != "" && r.ended:
		// Not one of the definite errors: the lease was ended.
		return fmt.Errorf("released, but the server did not remember the cancel: it says %q", r.refused)
	case r.refused != "":
		return ReplyError(r.refused)
	case !r.ended:
		return driver.ErrLost
	}
	return nil
}
