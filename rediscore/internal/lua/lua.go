// Package lua is the drawer of the scripts: each operation on the store is one,
// an atomic step and one round trip.
//
// A script is put together from the files beside this one. Each file begins with
// what it is for, its KEYS and ARGV, and its reply. Which pieces stand in front
// of which, in what order, and where in KEYS and ARGV everything is, is said in
// scripts.go and nowhere else.
//
//	lua.go       how a script is put together
//	scripts.go   all scripts: their pieces, KEYS and ARGV
//	join, foreign, no_foreign, handover, value, clock, state, queue, yield, serve,
//	end, request
//	             pieces of the operations on locks, in this order
//	member, vault
//	             pieces of those of a quorum's member, and on one-time tokens
//	plain_*      the common cases, for many requests in a call; see there
//	other .lua   the operations, each at the end of its script
//
// A line that begins with --@ is code of engines that write history, and one that
// ends with it is code of the others. So theirs are the scripts that they would be if
// there were no history.
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

// DataLayout is the number of what the keys of a name hold, and how. It is the first
// word of a lock's value, and a field of its detail; see value.lua and state.lua.
// Whoever changes what a script of another version would misread gives it the next
// number. (The key of the last token is the same in all.)
const DataLayout = "3"

// Times in ms, which stand in the scripts by their names, because those that stand in
// front of all else cannot share a local with the others.
const (
	// Companions outlive what they hold by the slack, so that they go away by
	// themselves (INVARIANT I11) and are seldom found in part.
	slack = "5000"
	// Those of places are lengthened by the spare more than need be, so that it is seldom.
	spare = "1000"
	// The history of a name lasts this long from the first event of what counts as an
	// hour here: the same first digits of the clock in us, which are 10,000 s. So it
	// lasts driver.HistoryMemory from its last event, and is seldom told so.
	historyMemory = "100800000"
	hour          = "6"
	// When a history has more than the most items, it is cut to those that are kept,
	// or one less. Half of these may be empty, and driver.MaxHistory are left.
	mostItems = "160"
	keptItems = "130"
)

//go:embed *.lua
var drawer embed.FS

// A Script is Lua code, and the hash by which a server knows it. Both are made
// when they are first asked for: a program that takes one lock and ends, as the
// command line does, needs two of the scripts, and all of them cost it more than
// its requests do.
type Script struct {
	Layout
	source func() (text, sha string)

	// Repeats says that a repeat is answered as the first request was
	// (INVARIANT I6), so that it may be sent again on a new connection. Of a
	// script that ends something, the repeat would say that it is not there.
	Repeats bool
}

// A Layout says what the KEYS and ARGV of a script are, in their order: some
// once and, in scripts about several leases or names, then some for each. Go
// puts them together by it. In the script, KEYS[NAME] is what is there once, and
// KEYS[at + NAME] what is there for each, whose own begin behind at. HEAD_KEYS
// and HEAD_ARGS are how many are there once, EACH_KEYS and EACH_ARGS how many for
// each.
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

// A kit makes scripts. history says that they write it.
type kit struct{ history bool }

// build returns the script that is made of pieces. Of its keys and arguments,
// those behind a bar are there for each.
func (k kit) build(pieces, keys, args string) *Script {
	var l Layout
	l.Keys, l.EachKeys = split(keys)
	l.Args, l.EachArgs = split(args)
	s := later(func() string { return l.places().Replace(k.read(pieces)) })
	s.Layout = l
	return s
}

// only returns text if history is written, and else nothing.
func (k kit) only(text string) string {
	if !k.history {
		return ""
	}
	return text
}

func split(names string) (head, each []string) {
	once, more, _ := strings.Cut(names, "|")
	return strings.Fields(once), strings.Fields(more)
}

// again says that a script may be sent again.
func (s *Script) again() *Script {
	s.Repeats = true
	return s
}

// places puts numbers in place of names. As locals they would cost the server
// time in every call.
func (l Layout) places() *strings.Replacer {
	var pairs []string
	for _, names := range [][]string{l.Keys, l.EachKeys, l.Args, l.EachArgs} {
		for i, name := range names {
			name, place := strings.ToUpper(name)+"]", strconv.Itoa(i+1)+"]"
			pairs = append(pairs, "["+name, "["+place, "+ "+name, "+ "+place)
		}
	}
	return strings.NewReplacer(append(pairs, "THIS_LAYOUT", DataLayout, "SLACK", slack, "SPARE", spare,
		"HISTORY_MEMORY", historyMemory, "HISTORY_SUFFIX", strconv.Quote(keys.HistorySuffix),
		"MOST_ITEMS", mostItems, "KEPT_ITEMS", keptItems, "HOUR", hour,
		"HEAD_KEYS", strconv.Itoa(len(l.Keys)), "EACH_KEYS", strconv.Itoa(len(l.EachKeys)),
		"HEAD_ARGS", strconv.Itoa(len(l.Args)), "EACH_ARGS", strconv.Itoa(len(l.EachArgs)))...)
}

// line returns what is of a line in the scripts of the kit.
func (k kit) line(line string) string {
	bare := strings.TrimLeft(line, " ")
	if code, ok := strings.CutPrefix(bare, remembering); ok {
		return k.only(line[:len(line)-len(bare)] + code)
	}
	if code, ok := strings.CutSuffix(line, forgetting); !ok {
		return line
	} else if !k.history {
		return code + "\n"
	}
	return ""
}

// Arg returns the index of an argument that is there once.
func (l Layout) Arg(name string) int { return slices.Index(l.Args, name) }

// What a line begins with that is of engines which write history, and ends with that
// is of the others.
const (
	remembering = "--@ "
	forgetting  = " --@\n"
)

// read returns the text of pieces, one behind the other.
func (k kit) read(pieces string) string {
	var text strings.Builder
	for piece := range strings.FieldsSeq(pieces) {
		source, err := drawer.ReadFile(piece + ".lua")
		if err != nil {
			panic(err) // there is no such file: no script could ever be sent
		}
		for line := range strings.Lines(string(source)) {
			text.WriteString(k.line(line))
		}
	}
	return text.String()
}
