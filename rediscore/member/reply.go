package member

import (
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
)

// The functions of this file read the replies that the headers of the scripts
// describe. A reply of another form leaves the outcome unknown.

func parsePropose(reply any) (driver.ProposeReply, error) {
	items, _ := reply.([]any)
	malformed := form.Malformed("propose", reply)
	switch {
	case len(items) == 1 && items[0] == int64(-3):
		return driver.ProposeReply{}, form.NoLastToken()
	case len(items) == 2 && items[0] == int64(-4):
		limit, ok := items[1].(int64)
		if !ok {
			return driver.ProposeReply{}, malformed
		}
		return driver.ProposeReply{}, form.WrongKind(limit)
	case len(items) != 7:
		return driver.ProposeReply{}, malformed
	}
	var n [5]int64
	var s [2]string
	for i, item := range items {
		var ok bool
		if i < len(n) {
			n[i], ok = item.(int64)
		} else {
			s[i-len(n)], ok = item.(string)
		}
		if !ok {
			return driver.ProposeReply{}, malformed
		}
	}
	vote := driver.Vote(n[0])
	if vote < driver.VoteRefused || vote > driver.VoteQuarantined || n[1] < 0 || n[2] < 0 || n[3] < 0 {
		return driver.ProposeReply{}, malformed
	}
	r := driver.ProposeReply{Vote: vote, Counter: uint64(n[1]), Clock: uint64(n[2]), Token: uint64(n[3])}
	switch vote {
	case driver.VoteHeld:
		r.Rival = driver.LeaseID(s[1])
		r.Blocker = driver.Blocker{Holder: form.ReadHolder(s[0]), ExpiresIn: form.ExpiresIn(n[4])}
	case driver.VoteQuarantined:
		r.Remaining = form.ExpiresIn(n[4])
	}
	return r, nil
}

// parseRenew fills replies, one per request.
func parseRenew(reply any, replies []driver.RenewReply) error {
	items, _ := reply.([]any)
	if len(items) != len(replies) {
		return form.Malformed("renew", reply)
	}
	for i, item := range items {
		switch item := item.(type) {
		case string:
			replies[i].Err = rediscore.ReplyError(item)
		case int64:
			switch {
			case item > 0:
				replies[i].Token = uint64(item)
			case item == 0:
				replies[i].Err = driver.ErrLost
			default:
				replies[i].Err = form.Malformed("renew", item)
			}
		default:
			replies[i].Err = form.Malformed("renew", item)
		}
	}
	return nil
}

func parseWithdraw(reply any) (uint64, error) {
	items, _ := reply.([]any)
	if len(items) == 1 && items[0] == int64(-3) {
		return 0, form.NoLastToken()
	}
	if len(items) != 2 {
		return 0, form.Malformed("withdraw", reply)
	}
	token, ok1 := items[0].(int64)
	refused, ok2 := items[1].(string)
	switch {
	case !ok1 || !ok2 || token < 0:
		return 0, form.Malformed("withdraw", reply)
	case refused != "" && token > 0:
		// Not one of the definite errors: the lease was ended.
		return 0, fmt.Errorf("withdrawn, but the server did not remember the cancel: it says %q", refused)
	case refused != "":
		return 0, rediscore.ReplyError(refused)
	case token == 0:
		return 0, driver.ErrLost
	}
	return uint64(token), nil
}
