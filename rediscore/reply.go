package rediscore

import (
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/holders"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
)

// The functions in this file read the replies that the headers of the scripts describe. After a
// reply of another form the outcome is unknown.

func parseAcquire(reply any, minToken uint64) (driver.AcquireReply, error) {
	var outcome, n, place, places, us, closed int64
	var text string
	switch {
	case form.Read(reply, &outcome, &n) && outcome == 1 && isToken(n):
		return driver.AcquireReply{Outcome: driver.Granted, Token: uint64(n)}, nil
	case form.Read(reply, &outcome, &n, &text, &place, &places, &us, &closed) && outcome == 0 && min(place, places) >= 0 && closed&^1 == 0:
		return driver.AcquireReply{Outcome: driver.Held, Blocker: driver.Blocker{
			Holder: holders.Read(text), Since: form.Ago(us), ExpiresIn: form.ExpiresIn(n), Released: closed == 1,
			Place: int(place), Queue: int(places), Foreign: text == "",
		}}, nil
	case form.Read(reply, &outcome, &text) && outcome == 2:
		return driver.AcquireReply{Outcome: driver.Recorded, Record: []byte(text)}, nil
	case form.Read(reply, &outcome, &n) && outcome == -4 && n >= 0:
		return driver.AcquireReply{}, form.WrongKind(n)
	case !form.Read(reply, &outcome):
	case outcome == -1:
		return driver.AcquireReply{Outcome: driver.Cancelled}, nil
	case outcome == 3:
		return driver.AcquireReply{Outcome: driver.Repeated}, nil
	case outcome == -2:
		return driver.AcquireReply{}, fmt.Errorf("%w MinToken %d: it is more than %s ahead of the server's clock",
			driver.ErrInvalid, minToken, driver.MaxTokenLead)
	case outcome == -3:
		return driver.AcquireReply{}, form.NoLastToken()
	}
	return driver.AcquireReply{}, form.Malformed("acquire", reply)
}

// isToken reports whether n can be a token of a store.
func isToken(n int64) bool { return n >= 1 && uint64(n) <= driver.MaxToken }

// parseAcquireAll reads the reply of acquire_all.lua to reqs.
func parseAcquireAll(reply any, reqs []driver.AcquireRequest) (driver.AllReply, error) {
	var outcome, i int64
	var refusal any
	if form.Read(reply, &outcome, &i, &refusal) && outcome == 0 && i >= 0 && i < int64(len(reqs)) {
		var text string
		if form.Read(refusal, &text) {
			return driver.AllReply{Refused: int(i)}, acquireAllError(reqs[i], ReplyError(text))
		}
		answer, err := parseAcquire(refusal, reqs[i].MinToken)
		if err != nil {
			return driver.AllReply{Refused: int(i)}, acquireAllError(reqs[i], err)
		}
		if answer.Outcome != driver.Granted {
			return driver.AllReply{Outcome: answer.Outcome, Refused: int(i), Blocker: answer.Blocker}, nil
		}
	}
	items, _ := reply.([]any)
	if len(items) != len(reqs)+1 || items[0] != int64(1) {
		return driver.AllReply{}, form.Malformed("acquire-all", reply)
	}
	all := driver.AllReply{Outcome: driver.Granted}
	for _, item := range items[1:] {
		token, ok := item.(int64)
		if !ok || !isToken(token) {
			return driver.AllReply{}, form.Malformed("acquire-all", reply)
		}
		all.Tokens = append(all.Tokens, uint64(token))
	}
	return all, nil
}

// parseRefresh reads the reply of refresh.lua for one place.
func parseRefresh(reply any) (answer driver.RefreshReply) {
	if text, ok := reply.(string); ok {
		answer.Err = ReplyError(text)
		return answer
	}
	var outcome int64
	if form.Read(reply, &outcome) && outcome == -5 {
		answer.Err = driver.ErrLost
		return answer
	}
	answer.AcquireReply, answer.Err = parseAcquire(reply, 0)
	return answer
}

// parseExtend reads the reply of extend.lua for one lease.
func parseExtend(reply any) error {
	switch reply := reply.(type) {
	case string:
		return ReplyError(reply)
	case int64:
		if reply == 1 {
			return nil
		}
		if reply == 0 {
			return driver.ErrLost
		}
	}
	return form.Malformed("extend", reply)
}

// A released sums up the replies of release.lua to one request.
type released struct {
	ended   bool   // the lease has ended
	refused string // why the cancel is not remembered
	more    bool   // there is more to do
	message string // to the engine's inbox; "" for none
}

// parse adds another reply.
func (r *released) parse(reply any) error {
	var found, more int64
	var refused string
	if !form.Read(reply, &found, &refused, &more, &r.message) || found&^1 != 0 || more&^1 != 0 {
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

// more is the reply of a script that could not do all its work in one call: it has not begun the
// request, or not finished it. The same call, from any client, continues there.
const more = int64(-6)

// isMore reports whether a reply requires another call.
func isMore(reply any) bool {
	if items, ok := reply.([]any); ok && len(items) == 1 {
		reply = items[0]
	}
	return reply == more
}
