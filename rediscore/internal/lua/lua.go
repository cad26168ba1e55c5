// Package lua has the scripts: each operation on the store is one script, an atomic step
// and one round trip.
//
// A script is a concatenation of pieces, which are the files in this folder. Each file begins with
// its purpose, its KEYS and ARGV, and its reply. scripts.go lists the pieces of each script, and
// its KEYS and ARGV, in order. Every engine uses the same text. Whether it records history, and
// whether other clients may want its locks, are arguments.
//
//	lua.go       how a script is put together
//	scripts.go   all scripts: their pieces, KEYS and ARGV
//	feed, join, handover, value, clock, token, state, remember, queue, yield, serve,
//	end, request
//	             pieces of the operations on locks, in this order
//	member, vault
//	             pieces of those of a quorum's member, and on one-time tokens
//	plain_*      fast paths for many requests in a call; see plain_each.lua
//	each         calls a function for each request of a call
//	other .lua   the operations, each at the end of its script
package lua

import (
	"crypto/sha1" //nolint:gosec // what Redis calls scripts by
	"embed"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/holdfast-locks/holdfast/rediscore/internal/keys"
)

// DataLayout is the number of the format of a name's keys. It is the first word of a lock's value,
// and a field of its detail; see value.lua and state.lua. Increase it for a change that a script of
// another version would misread. (The key of the last token is the same in all layouts.)
const DataLayout = "1"

// constants are numbers that several scripts use, by name. As Lua locals they would cost the server
// time in every call. Times are in ms.
var constants = []string{
	"THIS_LAYOUT", DataLayout,
	// Companions outlive their contents by SLACK, so that they expire by themselves (INVARIANT I11)
	// and scripts seldom find only some of them.
	"SLACK", "5000",
	// The expiry of the companions of places is set this much too late, so that it is set less
	// often.
	"SPARE", "1000",
	// Waiters hand the lock over among themselves for TURNS before they leave it free for other
	// clients, or for SHARE if such a client held it lately. See yield.lua.
	"TURNS", "250",
	"SHARE", "150",
	// A history expires this long after the first event of an hour. HOUR digits of the clock in us
	// count such hours, of 10,000 s. So a history lasts driver.HistoryMemory from its last event,
	// and its expiry is seldom set.
	"HISTORY_MEMORY", "100800000",
	"HOUR", "6",
	// A history with more than MOST_ITEMS is cut to KEPT_ITEMS, or one less. Half of these may be
	// empty, which leaves driver.MaxHistory.
	"MOST_ITEMS", "160",
	"KEPT_ITEMS", "130",
	// TOKEN_RANGE is how many tokens a grant reserves: driver.TokenRange. INVARIANT I2.
	"TOKEN_RANGE", "4",
	"HISTORY_SUFFIX", strconv.Quote(keys.HistorySuffix),
	"CROWD_SUFFIX", strconv.Quote(keys.CrowdSuffix),
}

//go:embed *.lua
var files embed.FS

// A Script is Lua code, and the hash by which the server knows it. Both are computed on first use:
// a short program such as the command needs two of the scripts, and all of them would cost it more
// than its requests.
type Script struct {
	Layout
	source func() (text, sha string)

	// Repeats is true if a repeated request has the same reply as the first one (INVARIANT I6), so
	// that it may be sent again on a new connection. It is false for a script that ends something:
	// a repeat would find nothing to end.
	Repeats bool
}

// A Layout lists the KEYS and ARGV of a script in order: first those that occur once and then, in
// scripts for several leases or names, those of each request. In the script, KEYS[NAME] is a key
// that occurs once. KEYS[at + NAME] is a key of a request whose keys follow KEYS[at]. HEAD_KEYS,
// EACH_KEYS, HEAD_ARGS and EACH_ARGS stand for the lengths of the lists. If the first argument of a
// request is AT, it is the number of the key before those of its name. Requests about the same name
// then share these keys.
type Layout struct {
	Keys, EachKeys []keys.Kind
	Args, EachArgs []string
}

// New returns a script with the given text.
func New(text string) *Script { return later(func() string { return text }) }

// later returns a script whose text is computed on first use.
func later(write func() string) *Script {
	return &Script{source: sync.OnceValues(func() (text, sha string) {
		text = write()
		sum := sha1.Sum([]byte(text)) //nolint:gosec // see above
		return text, hex.EncodeToString(sum[:])
	})}
}

// Source returns the text of the script, and its hash.
func (s *Script) Source() (text, sha string) { return s.source() }

// build returns the script that consists of pieces. In keys and args, a bar precedes those that
// each request has.
func build(pieces, keys, args string) *Script {
	var l Layout
	l.Keys, l.EachKeys = split(keys)
	l.Args, l.EachArgs = split(args)
	s := later(func() string { return l.numbers().Replace(read(pieces)) })
	s.Layout = l
	return s
}

func split(names string) (head, each []string) {
	once, more, _ := strings.Cut(names, "|")
	return strings.Fields(once), strings.Fields(more)
}

// with adds keys that the text does not name: to those of each request, if there are any.
func (s *Script) with(kinds string) *Script {
	to := &s.Keys
	if len(s.EachKeys) > 0 {
		to = &s.EachKeys
	}
	*to = slices.Concat(*to, strings.Fields(kinds))
	return s
}

// again allows the script to be repeated.
func (s *Script) again() *Script {
	s.Repeats = true
	return s
}

// numbers returns a replacer that replaces the names of KEYS, ARGV and constants by numbers.
func (l Layout) numbers() *strings.Replacer {
	var pairs []string
	for _, names := range [][]string{l.Keys, l.EachKeys, l.Args, l.EachArgs} {
		for i, name := range names {
			name, number := strings.ToUpper(name)+"]", strconv.Itoa(i+1)+"]"
			pairs = append(pairs, "["+name, "["+number, "+ "+name, "+ "+number)
		}
	}
	pairs = append(pairs, "HEAD_KEYS", strconv.Itoa(len(l.Keys)), "EACH_KEYS", strconv.Itoa(len(l.EachKeys)),
		"HEAD_ARGS", strconv.Itoa(len(l.Args)), "EACH_ARGS", strconv.Itoa(len(l.EachArgs)))
	return strings.NewReplacer(append(pairs, constants...)...)
}

// Shares reports whether requests about the same name share its keys.
func (l Layout) Shares() bool { return len(l.EachArgs) > 0 && l.EachArgs[0] == "at" }

// Arg returns the index of an argument that occurs once.
func (l Layout) Arg(name string) int { return slices.Index(l.Args, name) }

// read returns the concatenated text of pieces.
func read(pieces string) string {
	var text strings.Builder
	for piece := range strings.FieldsSeq(pieces) {
		source, err := files.ReadFile(piece + ".lua")
		if err != nil {
			panic(err) // no such file
		}
		text.Write(source)
	}
	return text.String()
}
