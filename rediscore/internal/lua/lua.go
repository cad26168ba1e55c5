// Package lua is the drawer of the scripts: each operation on the store is one,
// an atomic step and one round trip.
//
// A script is put together from the files beside this one. Each file begins with
// what it is for, its KEYS and ARGV, and its reply. Which pieces stand in front
// of which, and in what order, is said here and nowhere else.
package lua

import (
	"crypto/sha1" //nolint:gosec // what Redis calls scripts by
	"embed"
	"encoding/hex"
	"strings"
)

//go:embed *.lua
var drawer embed.FS

// A Script is Lua code, and the hash by which a server knows it.
type Script struct {
	Text, SHA string

	// Repeats says that a repeat is answered as the first request was
	// (INVARIANT I6), so that it may be sent again on a new connection. Of a
	// script that ends something, the repeat would say that it is not there.
	Repeats bool
}

// New returns a script with a text of its own.
func New(text string) *Script {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // see above
	return &Script{Text: text, SHA: hex.EncodeToString(sum[:])}
}

// The pieces that scripts have in common, each behind what it needs.
const (
	leases = "value clock state"
	member = "value clock member"
)

// Engine are the scripts of an engine.
type Engine struct {
	Acquire, AcquireAll, Extend, Refresh, Release, Downgrade *Script
	Complete, Recall                                         *Script
	Break, Breaks                                            *Script
	Inspect, InspectRest                                     *Script
	ExtendAlone, ReleaseAlone                                *Script
	Deposit, Redeem, Peek, Revoke                            *Script // one-time tokens
}

// ForEngine returns the scripts of an engine. foreign says that clients which
// are not holdfast may want the same locks.
func ForEngine(foreign bool) Engine {
	queues := leases + " queue foreign yield serve"
	if !foreign {
		queues = leases + " queue no_foreign yield serve"
	}
	once := func(pieces string) *Script { return New(read(pieces)) }
	again := func(pieces string) *Script {
		s := once(pieces)
		s.Repeats = true
		return s
	}
	return Engine{
		Acquire:    again(queues + " request acquire"),
		AcquireAll: again(queues + " request acquire_all"),
		Refresh:    again(queues + " refresh"),
		Release:    once(queues + " finish release"),
		Downgrade:  once(queues + " downgrade"),
		Complete:   once(queues + " finish complete"),
		Break:      again(queues + " finish break"),
		Breaks:     again("clock breaks"),
		Extend:     again(leases + " extend"),

		Recall:      again("recall"),
		Inspect:     again("inspect"),
		InspectRest: again("inspect_rest"),

		ExtendAlone:  once("value extend_alone"),
		ReleaseAlone: once("value release_alone"),

		Deposit: once("vault vault_deposit"),
		Redeem:  once("vault vault_redeem"),
		Peek:    again("vault vault_peek"),
		Revoke:  once("vault vault_revoke"),
	}
}

// Member are the scripts of a member of a quorum.
type Member struct{ Propose, Renew, Withdraw, Admit *Script }

// ForMember returns the scripts of a member.
func ForMember() Member {
	load := func(pieces string) *Script { return New(read(pieces)) }
	return Member{
		Propose:  load(member + " member_propose"),
		Renew:    load(member + " member_renew"),
		Withdraw: load(member + " member_withdraw"),
		Admit:    load(member + " member_admit"),
	}
}

// read returns the text of pieces, one behind the other.
func read(pieces string) string {
	var text strings.Builder
	for piece := range strings.FieldsSeq(pieces) {
		source, err := drawer.ReadFile(piece + ".lua")
		if err != nil {
			panic(err) // there is no such file: no script could ever be sent
		}
		text.Write(source)
	}
	return text.String()
}
