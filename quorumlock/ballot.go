package quorumlock

import (
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A ballot is one round of a proposal: the answers of the members so far.
type ballot struct {
	quorum   int           // the least number of members that is a majority
	minToken uint64        // of the request
	lead     time.Duration // see Engine.lead
	answers  []answer      // by member
}

// An answer is one member's answer, or its absence.
type answer struct {
	state answerState
	reply driver.ProposeReply // if answered
	err   error               // if failed
}

type answerState int

const (
	pending  answerState = iota
	answered             // with a vote
	failed               // with an error of any class
)

// is reports whether the member has answered with v.
func (a *answer) is(v driver.Vote) bool { return a.state == answered && a.reply.Vote == v }

// free reports whether the member could accept some token: it has no lease, or only one of this
// attempt, which a greater token replaces.
func (a *answer) free() bool { return a.is(driver.VoteAccepted) || a.is(driver.VoteRefused) }

// A tally counts the answers of a ballot. Members that failed or are in
// quarantine take no part.
type tally struct {
	accepted, refused, own, held, pending int

	unseen int // members that have not answered or have failed; they may have any lease

	// ownToken is the token of the lease of this ID from another request that the most members
	// have.
	ownToken uint64
	ownMost  int
	// rivalMost is the largest number of members that have the same other lease.
	rivalMost int
	cancelled bool
}

// tally counts the answers. It counts leases together only if they are the same: other leases by
// lease ID, those of this ID by token. Repeats of a request, by this engine or another, may have
// left several of the latter.
func (b *ballot) tally() tally {
	var t tally
	own, rivals := map[uint64]int{}, map[lockinfo.LeaseID]int{}
	for _, a := range b.answers {
		if a.state == pending {
			t.pending++
		}
		if a.state != answered {
			t.unseen++
			continue
		}
		switch a.reply.Vote {
		case driver.VoteAccepted:
			t.accepted++
		case driver.VoteRefused:
			t.refused++
		case driver.VoteOwn:
			t.own++
			own[a.reply.Token]++
			if own[a.reply.Token] > t.ownMost {
				t.ownToken, t.ownMost = a.reply.Token, own[a.reply.Token]
			}
		case driver.VoteHeld:
			t.held++
			rivals[a.reply.Rival]++
			t.rivalMost = max(t.rivalMost, rivals[a.reply.Rival])
		case driver.VoteCancelled:
			t.cancelled = true
		}
	}
	return t
}
