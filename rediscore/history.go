package rediscore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/holders"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
	"github.com/holdfast-locks/holdfast/rediscore/internal/lua"
)

// History implements driver.Historian.
func (e *engine) History(ctx context.Context, name string) ([]lockinfo.HistoryEvent, error) {
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

// OnEvent implements driver.Historian.
func (e *engine) OnEvent(listener func(lockinfo.HistoryEvent)) (stop func()) {
	if e.events == nil {
		return func() {}
	}
	return e.events.onEvent(listener)
}

// parseHistory reads the reply of history.lua. It skips items that are malformed or too old, and
// those beyond the length of a history.
func parseHistory(name string, reply any) ([]lockinfo.HistoryEvent, error) {
	var clock, lines string
	var leases, crowd []any
	if !form.Read(reply, &clock, &leases, &crowd, &lines) {
		return nil, form.Malformed("history", reply)
	}
	now, err := strconv.ParseInt(clock, 10, 64)
	if err != nil {
		return nil, form.Malformed("history", reply)
	}
	ofLeases := parseItems(name, leases, now)
	events := append(brokenBefore(name, lines, now, ofLeases), interleave(ofLeases, parseItems(name, crowd, now))...)
	return driver.KeepHistory(events, func(e lockinfo.HistoryEvent) lockinfo.HistoryKind { return e.Kind }), nil
}

// parseItems reads a list of events.
func parseItems(name string, items []any, now int64) (events []lockinfo.HistoryEvent) {
	for _, item := range items {
		text, _ := item.(string)
		if e, ok := parseEvent(name, text, now); ok && e.Ago < driver.HistoryMemory {
			events = append(events, e)
		}
	}
	return events
}

// brokenBefore returns the breaks that are older than the first of events.
func brokenBefore(name, lines string, now int64, events []lockinfo.HistoryEvent) (before []lockinfo.HistoryEvent) {
	for line := range strings.Lines(lines) {
		b, ok := parseLine(strings.TrimSuffix(line, "\n"), now/1000)
		e := b.event(name)
		if !ok || e.Ago >= driver.HistoryMemory || slices.ContainsFunc(events, func(other lockinfo.HistoryEvent) bool { return other.ID == e.ID }) {
			continue
		}
		if len(events) == 0 || e.Ago >= events[0].Ago {
			before = append(before, e)
		}
	}
	return before
}

// event returns the event of the break, as feed.lua keeps it.
func (b *brokenLease) event(name string) lockinfo.HistoryEvent {
	token := strconv.FormatUint(b.Token, 10)
	return lockinfo.HistoryEvent{
		ID: eventID(name, token, 'b'), Kind: lockinfo.HistoryBroken, Name: name, Ago: b.Ago,
		Mode: b.Mode, Token: b.Token, Holder: b.Holder,
		Held: form.Ago(b.at - b.granted), Author: b.Author, Reason: b.Reason,
	}
}

// interleave merges two lists by time and keeps the order within each. If events have the same
// time, the end of a lease comes first, then the events of waiters, then the beginning of a lease.
func interleave(leases, crowd []lockinfo.HistoryEvent) (all []lockinfo.HistoryEvent) {
	for len(leases) > 0 && len(crowd) > 0 {
		l, w := leases[0], crowd[0]
		if w.Ago > l.Ago || w.Ago == l.Ago && l.Kind.Begins() {
			all, crowd = append(all, w), crowd[1:]
		} else {
			all, leases = append(all, l), leases[1:]
		}
	}
	return append(append(all, leases...), crowd...)
}

// eventKinds are the kinds of events by their letters in the store.
var eventKinds = map[byte]lockinfo.HistoryKind{
	'a': lockinfo.HistoryAcquired, 'h': lockinfo.HistoryHandedOver, 'r': lockinfo.HistoryReleased, 'x': lockinfo.HistoryExpired,
	'l': lockinfo.HistoryLost, 'b': lockinfo.HistoryBroken, 'c': lockinfo.HistoryCompleted, 'q': lockinfo.HistoryQueued, 'w': lockinfo.HistoryGaveUp,
}

// parseEvent reads an item of a history, or a message about it; feed.lua describes the forms. now
// is the server's clock in us.
func parseEvent(name, item string, now int64) (e lockinfo.HistoryEvent, ok bool) {
	if item == "" {
		return e, false
	}
	letter := item[0]
	var what string
	var clock, since int64
	switch {
	case strings.HasPrefix(item, lua.DataLayout):
		letter = 'a'
		clock, what, item, ok = cutLease(item)
	case letter == 'R':
		letter = 'r'
		head, lease, _ := strings.Cut(item[1:], " ")
		clock = readClock(head)
		since, what, item, ok = cutLease(lease)
	default:
		clock, since, what, item, ok = cutEvent(&e, item[1:])
	}
	e.Kind = eventKinds[letter]
	if !ok || clock <= 0 || e.Kind == lockinfo.HistoryGap {
		return lockinfo.HistoryEvent{}, false
	}
	holder, text, _ := strings.Cut(item, "\t")
	if e.Kind == lockinfo.HistoryBroken {
		var a about
		_ = json.Unmarshal([]byte(text), &a) // malformed text is left out
		e.Author, e.Reason = a.Author, a.Reason
	}
	e.Name, e.Holder, e.Ago = name, holders.Read(holder), form.Ago(now-clock)
	e.ID = eventID(name, what, letter)
	if e.Kind != lockinfo.HistoryQueued && e.Kind != lockinfo.HistoryGaveUp {
		token, err := form.ReadToken(what)
		if err != nil {
			return lockinfo.HistoryEvent{}, false
		}
		e.Token = token
	}
	if lasted := form.Ago(clock - since); e.Kind.Ends() {
		e.Held = lasted
	} else if since != 0 {
		e.Waited = lasted
	}
	return e, true
}

// readClock returns 0 for a text that is not a number.
func readClock(text string) (us int64) {
	us, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return us
}

// cutLease reads the former value of an exclusive lease's key, with or without the lease ID. It
// returns the text after the time of the grant.
func cutLease(text string) (granted int64, token, rest string, ok bool) {
	text, ours := strings.CutPrefix(text, lua.DataLayout+" ")
	if id, rest, _ := strings.Cut(text, " "); lockinfo.LeaseID(id).Valid() {
		text = rest
	}
	_, text, _ = strings.Cut(text, " ")
	token, text, _ = strings.Cut(text, " ")
	clock, rest, ok := strings.Cut(text, " ")
	granted = readClock(clock)
	return granted, token, rest, ours && ok && granted > 0
}

// cutEvent reads <clock> <token> <mode> <limit> <permits> <since>, and returns the rest.
func cutEvent(e *lockinfo.HistoryEvent, text string) (clock, since int64, what, rest string, ok bool) {
	head, text, _ := strings.Cut(text, " ")
	what, text, _ = strings.Cut(text, " ")
	fields, rest, ok := cutFields(text, 4)
	if !ok || what == "" {
		return 0, 0, "", "", false
	}
	e.Mode = readMode(fields[0], fields[1], fields[2])
	return readClock(head), fields[3], what, rest, true
}

// eventID returns the ID of an event. It is a hash of the name and of the lease's token or the
// place's description, which are unique for the name. A hash is used because the description of a
// place contains half of a lease ID.
func eventID(name, what string, letter byte) string {
	sum := sha256.Sum256([]byte(name + "\x00" + what))
	return hex.EncodeToString(sum[:12]) + "-" + string(letter)
}
