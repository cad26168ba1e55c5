package rediscore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
	"github.com/holdfast-locks/holdfast/rediscore/internal/lua"
)

// History implements driver.Historian.
func (e *Engine) History(ctx context.Context, name string) ([]driver.Event, error) {
	if e.events == nil {
		return nil, driver.ErrUnsupported
	}
	if err := e.store.Enter(ctx, name); err != nil {
		return nil, err
	}
	reply, err := e.execAll(ctx, e.scripts.History, e.store.keys.Of(e.scripts.History.Keys, name, ""), e.serving(0))
	if err != nil {
		return nil, err
	}
	return parseHistory(name, reply)
}

// parseHistory reads the reply of history.lua. An item that makes no sense is left
// out, and so is what is too old, or more than there is to be.
func parseHistory(name string, reply any) (events []driver.Event, err error) {
	var clock string
	var items []any
	if !form.Read(reply, &clock, &items) {
		return nil, form.Malformed("history", reply)
	}
	now, err := strconv.ParseInt(clock, 10, 64)
	if err != nil {
		return nil, form.Malformed("history", reply)
	}
	for _, item := range items {
		text, _ := item.(string)
		if e, ok := parseEvent(name, text, now); ok && e.Ago < driver.HistoryMemory {
			events = append(events, e)
		}
	}
	return events[max(0, len(events)-driver.MaxHistory):], nil
}

// eventKinds are the kinds of events by their letters in the store.
var eventKinds = map[byte]driver.EventKind{
	'a': driver.EventAcquired, 'h': driver.EventHandedOver, 'r': driver.EventReleased, 'x': driver.EventExpired,
	'l': driver.EventLost, 'b': driver.EventBroken, 'c': driver.EventCompleted, 'q': driver.EventQueued, 'w': driver.EventLeft,
}

// parseEvent reads an item of a history, or a message about it, of which feed.lua has
// the forms. now is the server's clock in us.
func parseEvent(name, item string, now int64) (e driver.Event, ok bool) {
	if item == "" {
		return e, false
	}
	letter, what := item[0], ""
	var clock, since int64
	switch {
	case strings.HasPrefix(item, lua.DataLayout):
		letter = 'a'
		clock, what, item, ok = cutLease(item)
	case letter == 'R':
		letter = 'r'
		head, lease, _ := strings.Cut(item[1:], " ")
		if clock, ok = readClock(head); ok {
			since, what, item, ok = cutLease(lease)
		}
	default:
		clock, since, what, item, ok = cutEvent(&e, item[1:])
	}
	e.Kind = eventKinds[letter]
	if !ok || e.Kind == driver.EventGap {
		return driver.Event{}, false
	}
	holder, text, _ := strings.Cut(item, "\t")
	if e.Kind == driver.EventBroken {
		var a about
		_ = json.Unmarshal([]byte(text), &a) // one that makes no sense says nothing
		e.Author, e.Reason = a.Author, a.Reason
	}
	e.Name, e.Holder, e.Ago = name, form.ReadHolder(holder), form.Ago(now-clock)
	e.ID = eventID(name, what, letter)
	if e.Kind != driver.EventQueued && e.Kind != driver.EventLeft {
		if e.Token, ok = readEventToken(what); !ok {
			return driver.Event{}, false
		}
	}
	if lasted := form.Ago(clock - since); e.Kind.Ends() {
		e.Held = lasted
	} else if since != 0 {
		e.Waited = lasted
	}
	return e, true
}

func readClock(text string) (us int64, ok bool) {
	us, err := strconv.ParseInt(text, 10, 64)
	return us, err == nil && us > 0
}

func readEventToken(text string) (token uint64, ok bool) {
	token, err := form.ReadToken(text)
	return token, err == nil
}

// cutLease reads what the key of an exclusive lease held, perhaps without the lease
// ID, and returns what follows the clock of the grant.
func cutLease(text string) (granted int64, token, rest string, ok bool) {
	text, ours := strings.CutPrefix(text, lua.DataLayout+" ")
	if id, rest, _ := strings.Cut(text, " "); driver.LeaseID(id).Valid() {
		text = rest
	}
	_, text, _ = strings.Cut(text, " ")
	token, text, _ = strings.Cut(text, " ")
	clock, rest, ok := strings.Cut(text, " ")
	granted, known := readClock(clock)
	return granted, token, rest, ours && ok && known
}

// cutEvent reads <clock> <token> <mode> <limit> <permits> <since>, and returns what
// follows.
func cutEvent(e *driver.Event, text string) (clock, since int64, what, rest string, ok bool) {
	head, text, _ := strings.Cut(text, " ")
	what, text, _ = strings.Cut(text, " ")
	fields, rest, ok := cutFields(text, 4)
	clock, known := readClock(head)
	if !ok || !known || what == "" {
		return 0, 0, "", "", false
	}
	e.Mode, e.Limit, e.Permits = driver.Mode(fields[0]), int(fields[1]), int(fields[2])
	return clock, fields[3], what, rest, true
}

// eventID returns the ID of an event, by the token of the lease or what is known of
// the place, which are a name's own. It says nothing about them: in what is known of a
// place is half of a lease ID.
func eventID(name, what string, letter byte) string {
	sum := sha256.Sum256([]byte(name + "\x00" + what))
	return hex.EncodeToString(sum[:12]) + "-" + string(letter)
}
