package mutant

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Mutant is the product with one fault.
type Mutant struct {
	Name      string // in lower case, words joined by '-'
	Breaks    string // what is wrong, in one sentence
	Invariant string // of ARCHITECTURE.md, as "I4"; "" if none
	File      string // below the root of the repository
	Old, New  string // Old is in the file exactly once; New is there instead

	FoundBy []Finder // each of them must fail

	// Hang says that the symptom is that something does not end: a finder that
	// runs into its time limit, or that the runtime ends because everything is
	// blocked, counts as failed.
	Hang bool

	// Crash says that the symptom is that the program ends, by a panic that begins with
	// this text.
	Crash string
}

// A Finder is a test.
type Finder struct {
	Dir  string // of its package, below the root of the repository
	Test string // its name, and that of a subtest behind a '/'
}

// String returns the finder as docs/track-record.md shows it.
func (f Finder) String() string {
	if f.Dir == "." {
		return f.Test
	}
	return f.Dir + " " + f.Test
}

// All returns the set. The names differ.
func All() []Mutant {
	return slices.Concat(
		leaseMutants(),
		apiMutants(),
		pageMutants(), pulseMutants(),
		dashboardMutants(),
		talkMutants(),
		termMutants(),
		lossMutants(),
		observeMutants(),
		waiterMutants(),
		adoptMutants(),
		formsMutants(),
		leadMutants(),
		everyMutants(),
		metricsMutants(),
		electMutants(),
		serveMutants(),
		turnsMutants(),
		workMutants(),
		mailboxMutants(),
		rulesMutants(),
		memlockMutants(),
		securityMutants(),
		sessionMutants(),
		redisLeaseMutants(),
		redisQueueMutants(),
		redisBoundMutants(),
		redisHistoryMutants(),
		layoutMutants(),
		joinMutants(),
		handOverMutants(),
		unheardMutants(),
		featureMutants(),
		movingMutants(),
		goRedisMutants(),
		sqliteMutants(),
		sqliteQueueMutants(),
		sqliteRuleMutants(),
		sqliteGroupMutants(),
		sqliteFileMutants(),
		systemStoreMutants(),
		whichStoreMutants(),
		storesMutants(),
		bothEnginesMutants(),
		quorumMutants(),
		guardMutants(),
		breakMutants(),
		recordMutants(),
		operatorMutants(),
		askMutants(),
		lazyMutants(),
		wholeMutants(),
		namesMutants(),
		commandMutants(),
		keepMutants(),
		startMutants(),
		textMutants(),
		foreignMutants(),
		lineMutants(),
		deletionMutants(),
		wireMutants(),
		groupMutants(),
		costMutants(),
		sinceMutants(),
		kitMutants(),
		httpLockMutants(),
		historyMutants(),
		httpLeaseMutants(),
		streamMutants(),
		lookMutants(),
	)
}

// apply returns the text of the mutant's file, below root, with the fault. It
// fails if the product has moved on and the fault has no place in it.
func (m Mutant) apply(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, m.File))
	if err != nil {
		return "", fmt.Errorf("mutant %s: %w", m.Name, err)
	}
	if n := strings.Count(string(text), m.Old); n != 1 {
		return "", fmt.Errorf("mutant %s: its text is in %s %d times, want once: the product has moved on, and the mutant has to follow it:\n%s",
			m.Name, m.File, n, m.Old)
	}
	return strings.Replace(string(text), m.Old, m.New, 1), nil
}
