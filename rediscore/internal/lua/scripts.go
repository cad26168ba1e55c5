package lua

import "github.com/holdfast-locks/holdfast/rediscore/internal/keys"

// Arguments that scripts have in common.
const (
	serving = "token_memory inboxes " // of all that may hand a lock over
	request = "id mode limit permits ttl min_token holder"
)

// Engine are the scripts of an engine.
type Engine struct {
	Acquire, AcquireAll, Extend, Refresh, Release, Downgrade *Script
	Complete, Recall, Records                                *Script
	Break, Breaks                                            *Script
	Inspect, InspectRest                                     *Script
	ExtendAlone, ReleaseAlone                                *Script
	PlainAcquire, PlainRelease, PlainRenew                   *Script
	Deposit, Redeem, Peek, Revoke                            *Script // one-time tokens
}

// ForEngine returns the scripts of an engine. foreign says that clients which
// are not holdfast may want the same locks.
func ForEngine(foreign bool) Engine {
	// Each piece stands behind those that it needs.
	const leases, serve = "value clock state ", "queue yield serve "
	others := "foreign "
	if !foreign {
		others = "no_foreign "
	}
	queues := others + leases + serve
	const state, cancellable = keys.State, keys.State + " cancelled"
	return Engine{
		Acquire:    build("join "+queues+"request acquire", cancellable, serving+"lead waiter_ttl once inbox | "+request).again(),
		AcquireAll: build(queues+"request acquire_all", "| "+cancellable, serving+"lead | "+request).again(),
		Refresh:    build(queues+"refresh", "| "+state, serving+"| id waiter_ttl").again(),
		Release:    build(others+"handover "+leases+serve+"end release", cancellable, serving+"id keep_for cancel_memory"),
		Downgrade:  build(queues+"downgrade", state, serving+"id"),
		Complete:   build(queues+"end complete", state, serving+"id data retention from"),
		Break: build(queues+"end break", state+" broken",
			serving+"id token older closed from break_memory most_breaks about message lift").again(),
		Breaks: build("clock breaks", "broken", "").again(),
		Extend: build(leases+"extend", "| lock holders waiters detail", "| id ttl").again(),

		Recall:      build("recall", "record", "").again(),
		Records:     build("records", "| record", "head").again(),
		Inspect:     build("value inspect", "| lock fence holders queue waiters detail", "places from").again(),
		InspectRest: build("inspect_rest", "holders detail", "cursor group").again(),

		ExtendAlone:  build("value extend_alone", "lock", "id ttl"),
		ReleaseAlone: build("value release_alone", "lock", "id keep_for"),

		// A repeat of a plain acquire is answered by the full script.
		PlainAcquire: build("plain_acquire", "| lock fence detail cancelled", "token_memory | id ttl holder"),
		PlainRelease: build("plain_release", "| lock detail", "| id"),
		PlainRenew:   build("plain_renew", "| lock", "| id ttl").again(),

		Deposit: build("vault vault_deposit", keys.Vault, "id data ttl memory"),
		Redeem:  build("vault vault_redeem", keys.Vault, "id grace"),
		Peek:    build("vault vault_peek", keys.Vault, "").again(),
		Revoke:  build("vault vault_revoke", keys.Vault, ""),
	}
}

// Member are the scripts of a member of a quorum.
type Member struct{ Propose, Renew, Withdraw, Admit *Script }

// ForMember returns the scripts of a member.
func ForMember() Member {
	const member = "value clock member "
	return Member{
		Propose: build(member+"member_propose", keys.Lease+" detail marker",
			"id ttl token replaces lead lag quarantine token_memory holder"),
		Renew: build(member+"member_renew", "marker | "+keys.Lease+" detail",
			"token_memory lead | id ttl repair token quarantine since holder"),
		Withdraw: build(member+"member_withdraw", keys.Lease, "id token lift keep_for cancel_memory token_memory"),
		Admit:    build(member+"member_admit", "marker", ""),
	}
}
