package lua

import "github.com/holdfast-locks/holdfast/rediscore/internal/keys"

// Arguments that scripts have in common.
const (
	serving = "token_memory inboxes foreign feed " // of all scripts that may hand a lock over
	request = "id mode limit permits ttl min_token holder"
)

// Engine has the scripts of an engine.
type Engine struct {
	Acquire, AcquireAll, Extend, Refresh, Release, Downgrade *Script
	Complete, Recall, Records                                *Script
	Break, Breaks                                            *Script
	History                                                  *Script // sent only by engines with history
	Used, List, Inspect, InspectRest                         *Script
	ExtendAlone, ReleaseAlone                                *Script
	PlainAcquire, PlainRelease, PlainCancel, PlainRenew      *Script
	Deposit, Redeem, Peek, Revoke                            *Script // one-time tokens
}

// Options decide which keys are sent with a script. The text is the same for all engines.
type Options struct {
	History bool // events are recorded
	Cluster bool // every key that a script uses must be declared
}

// ForEngine returns the scripts of an engine.
func ForEngine(o Options) Engine {
	var history, events, crowd string // keys whose names the scripts compute
	if o.History {
		history = keys.History
	}
	if o.History && o.Cluster {
		events, crowd = keys.History, keys.History+" "+keys.Crowd
	}
	// A piece must follow the pieces that it uses.
	const (
		leases      = "value clock token state "
		serve       = leases + "remember queue yield serve "
		plain       = "feed plain_history "
		state       = keys.State
		cancellable = state + " cancelled"
	)
	return Engine{
		Acquire:    build("feed join "+serve+"request acquire", cancellable, serving+"lead waiter_ttl once inbox first | "+request).with(crowd).again(),
		AcquireAll: build("feed "+serve+"request acquire_all", "| "+cancellable, serving+"lead | "+request).with(crowd).again(),
		Refresh:    build("feed "+serve+"refresh", "| "+state, serving+"| at id waiter_ttl").with(crowd).again(),
		Release:    build("feed handover "+serve+"end release", cancellable, serving+"id keep_for cancel_memory lost inbox").with(crowd),
		Downgrade:  build("feed "+serve+"downgrade", state, serving+"id").with(crowd),
		Complete:   build("feed "+serve+"end complete", state, serving+"id data retention from").with(crowd),
		Break: build("feed "+serve+"end break", state+" broken",
			serving+"id token older closed from break_memory most_breaks about message lift").with(crowd).again(),
		Breaks:  build("clock breaks", "broken", "").again(),
		History: build("feed "+serve+"history", state+" broken", serving).with(crowd).again(),
		Extend:  build(leases+"extend", "| lock fence holders queue detail", "token_memory feed | at id ttl token").with(events).again(),

		Recall:      build("recall", "record", "").again(),
		Records:     build("records each", "| record", "head").again(),
		Used:        build("used", "| lock detail", "").again(),
		List:        build("clock list", "| lock fence detail", "").again(),
		Inspect:     build("value clock inspect each", "| lock fence holders queue detail", "places from").again(),
		InspectRest: build("inspect_rest", "holders detail", "cursor group").again(),

		ExtendAlone:  build("value extend_alone", "lock", "id ttl token"),
		ReleaseAlone: build("value clock release_alone", "lock", "id keep_for lost remember"),

		// The full script serves the repeat of a plain acquire.
		PlainAcquire: build(plain+"plain_acquire plain_each", "| lock fence detail cancelled", "token_memory feed | id ttl holder").with(events),
		PlainRelease: build(plain+"plain_release plain_each", "| lock detail", "feed | id").with(events),
		PlainCancel:  build(plain+"plain_release plain_cancel plain_each", "| lock detail cancelled", "cancel_memory feed | id").with(events),
		PlainRenew:   build("plain_renew plain_each", "| lock", "token_memory | id ttl token").with(history).again(),

		Deposit: build("vault vault_deposit", keys.Vault, "id data ttl memory"),
		Redeem:  build("vault vault_redeem", keys.Vault, "id grace"),
		Peek:    build("vault vault_peek", keys.Vault, "").again(),
		Revoke:  build("vault vault_revoke", keys.Vault, ""),
	}
}

// Member has the scripts of a member of a quorum.
type Member struct{ Propose, Renew, Withdraw, Admit *Script }

// ForMember returns the scripts of a member.
func ForMember() Member {
	const member = "value clock token member "
	return Member{
		Propose: build(member+"member_propose", keys.Lease+" detail marker",
			"id proposer ttl token replaces lead lag quarantine token_memory holder"),
		Renew: build(member+"member_renew each", "marker | "+keys.Lease+" detail",
			"token_memory lead | id ttl repair token quarantine since holder"),
		Withdraw: build(member+"member_withdraw", keys.Lease, "id proposer released token lift keep_for cancel_memory token_memory"),
		Admit:    build(member+"member_admit", "marker", ""),
	}
}
