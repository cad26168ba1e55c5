package quorumlock

import (
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// A ballot is one round of a proposal: what each member has said so far.
type ballot struct {
	quorum   int           // the least number of members that is a majority
	minToken uint64        // of the request
	lead     time.Duration // see Engine.lead
	answers  []answer      // by member
}

// An answer is one member's, or that there is none.
type answer struct {
	state answerState
	reply driver.ProposeReply // if answered
	err   error               // if failed
}

type answerState int

const (
	pending  answerState = iota
	answered             // with a vote
	failed               // with an error, of whatever class
)

// is reports whether the member has answered with v.
func (a *answer) is(v driver.Vote) bool { return a.state == answered && a.reply.Vote == v }

// free reports whether the member could accept some token: nobody else has a
// lease there. One that is ours is replaced by a greater token.
func (a *answer) free() bool {
	return a.is(driver.VoteAccepted) || a.is(driver.VoteRefused) || a.is(driver.VoteOwn)
}

// A tally counts the answers of a ballot. Members that failed or are in
// quarantine take no part.
type tally struct {
	accepted, refused, own, held, pending int

	unseen int // members that have not answered, or have failed: they may have any lease

	// ownToken is the token of an earlier lease of ours that most members have.
	ownToken uint64
	ownMost  int
	// rivalMost is how many members one and the same other lease has.
	rivalMost int
	cancelled bool
}

// tally counts. Leases count together only if they are one and the same: those of
// others by lease ID, ours by token, because an attempt that was repeated may have
// left several.
func (b *ballot) tally() tally {
	var t tally
	own, rivals := map[uint64]int{}, map[driver.LeaseID]int{}
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
