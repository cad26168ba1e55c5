// Package lua has the scripts: each operation on the store is one script, an atomic step
// and one round trip.
//
// A script is put together from the pieces in the files of this folder. Each file begins
// with its purpose, its KEYS and ARGV, and its reply. scripts.go lists the pieces of each
// script in their order, and the order of its KEYS and ARGV. Every engine uses the same
// text. Whether it writes history, and whether other clients may want its locks, are
// arguments.
//
//	lua.go       how a script is put together
//	scripts.go   all scripts: their pieces, KEYS and ARGV
//	feed, join, handover, value, clock, token, state, remember, queue, yield, serve,
//	end, request
//	             pieces of the operations on locks, in this order
//	member, vault
//	             pieces of those of a quorum's member, and on one-time tokens
//	plain_*      fast paths for many requests in a call; see plain_each.lua
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

// DataLayout is the number of the format of a name's keys. It is the first word of a
// lock's value, and a field of its detail; see value.lua and state.lua. A change that a
// script of another version would misread needs the next number. (The key of the last
// token is the same in all layouts.)
const DataLayout = "1"

// constants are numbers that several scripts use, by name. As locals they would cost the
// server time in every call. Times are in ms.
var constants = []string{
	"THIS_LAYOUT", DataLayout,
	// Companions outlive their contents by the slack, so that they expire by themselves
	// (INVARIANT I11) and are seldom found in part.
	"SLACK", "5000",
	// The expiry of the companions of places is set this much too late, so that it is set seldom.
	"SPARE", "1000",
	// Waiters hand the lock on among themselves for TURNS before they leave it free for
	// other clients, or for SHARE if one of these was seen lately. See yield.lua.
	"TURNS", "250",
	"SHARE", "150",
	// A history expires this long after the first event of an hour. HOUR digits of the
	// clock in us count such hours, of 10,000 s. So a history lasts driver.HistoryMemory
	// from its last event, and its expiry is set seldom.
	"HISTORY_MEMORY", "100800000",
	"HOUR", "6",
	// A history with more than MOST_ITEMS is cut to KEPT_ITEMS, or one less. Half of them
	// may be empty, so driver.MaxHistory are left.
	"MOST_ITEMS", "160",
	"KEPT_ITEMS", "130",
	// How many tokens a grant reserves: driver.TokenRange. INVARIANT I2.
	"TOKEN_RANGE", "4",
	"HISTORY_SUFFIX", strconv.Quote(keys.HistorySuffix),
	"CROWD_SUFFIX", strconv.Quote(keys.CrowdSuffix),
}

//go:embed *.lua
var files embed.FS

// A Script is Lua code, and the hash by which a server knows it. Both are made on first
// use: a short program, such as the command, needs two of the scripts, and all of them
// would cost it more than its requests.
type Script struct {
	Layout
	source func() (text, sha string)

	// Repeats: a repeat is answered as the first request was (INVARIANT I6), so that it
	// may be sent again on a new connection. A repeat of a script that ends something
	// would find nothing to end.
	Repeats bool
}

// A Layout lists the KEYS and ARGV of a script in their order: first those that occur
// once and then, in scripts for several leases or names, those of each request. In the
// script, KEYS[NAME] occurs once, and KEYS[at + NAME] for each request, whose keys follow
// KEYS[at]. HEAD_KEYS, EACH_KEYS, HEAD_ARGS and EACH_ARGS are their numbers. If a request
// has the argument AT, which is its first one, that is the number of the key before those
// of its name, and requests about the same name share these.
type Layout struct {
	Keys, EachKeys []keys.Kind
	Args, EachArgs []string
}

// New returns a script with a text of its own.
func New(text string) *Script { return later(func() string { return text }) }

// later returns a script whose text is made when it is needed.
func later(write func() string) *Script {
	return &Script{source: sync.OnceValues(func() (text, sha string) {
		text = write()
		sum := sha1.Sum([]byte(text)) //nolint:gosec // see above
		return text, hex.EncodeToString(sum[:])
	})}
}

// Source returns the text of the script, and its hash.
func (s *Script) Source() (text, sha string) { return s.source() }

// build returns the script that is made of pieces. Of its keys and arguments, those after
// a bar are sent for each request.
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

// with declares more keys, which the text does not name: of each request, if it has any.
func (s *Script) with(kinds string) *Script {
	to := &s.Keys
	if len(s.EachKeys) > 0 {
		to = &s.EachKeys
	}
	*to = slices.Concat(*to, strings.Fields(kinds))
	return s
}

// again allows the script to be sent again.
func (s *Script) again() *Script {
	s.Repeats = true
	return s
}

// numbers replaces the names of KEYS, ARGV and constants by numbers.
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

// read returns the text of pieces, one after the other.
func read(pieces string) string {
	var text strings.Builder
	for piece := range strings.FieldsSeq(pieces) {
		source, err := files.ReadFile(piece + ".lua")
		if err != nil {
			panic(err) // there is no such file: the script could never be sent
		}
		text.Write(source)
	}
	return text.String()
}
