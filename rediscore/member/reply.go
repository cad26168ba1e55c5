package member

import (
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/holders"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
)

// The functions in this file read the replies that the headers of the scripts describe. After a
// reply of another form the outcome is unknown.

func parsePropose(reply any) (driver.ProposeReply, error) {
	var outcome, limit, counter, clock, token, left, us, closed int64
	var holder, rival string
	switch {
	case form.Read(reply, &outcome) && outcome == -3:
		return driver.ProposeReply{}, form.NoLastToken()
	case form.Read(reply, &outcome, &limit) && outcome == -4:
		return driver.ProposeReply{}, form.WrongKind(limit)
	}
	whole := form.Read(reply, &outcome, &counter, &clock, &token, &left, &holder, &rival, &us, &closed)
	vote := driver.Vote(outcome)
	if !whole || vote < driver.VoteRefused || vote > driver.VoteQuarantined || min(counter, clock, token) < 0 {
		return driver.ProposeReply{}, form.Malformed("propose", reply)
	}
	r := driver.ProposeReply{Vote: vote, Counter: uint64(counter), Clock: uint64(clock), Token: uint64(token)}
	switch vote {
	case driver.VoteHeld:
		r.Rival = lockinfo.LeaseID(rival)
		r.Blocker = driver.Blocker{
			Holder: holders.Read(holder), Since: form.Ago(us), ExpiresIn: form.ExpiresIn(left), Released: closed == 1,
		}
	case driver.VoteQuarantined:
		r.Remaining = form.ExpiresIn(left)
	}
	return r, nil
}

// parseRenew reads the reply of member_renew.lua for one lease.
func parseRenew(reply any) driver.RenewReply {
	switch reply := reply.(type) {
	case string:
		return driver.RenewReply{Err: rediscore.ReplyError(reply)}
	case int64:
		if reply > 0 {
			return driver.RenewReply{Token: uint64(reply)}
		}
		if reply == 0 {
			return driver.RenewReply{Err: driver.ErrLost}
		}
	}
	return driver.RenewReply{Err: form.Malformed("renew", reply)}
}

func parseWithdraw(reply any) (uint64, error) {
	var token int64
	var refused string
	switch {
	case form.Read(reply, &token) && token == -3:
		return 0, form.NoLastToken()
	case !form.Read(reply, &token, &refused) || token < 0:
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
