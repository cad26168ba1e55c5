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
	History                                                  *Script // sent only by those that write it
	Inspect, InspectRest                                     *Script
	ExtendAlone, ReleaseAlone                                *Script
	PlainAcquire, PlainRelease, PlainRenew                   *Script
	Deposit, Redeem, Peek, Revoke                            *Script // one-time tokens
}

// Options say for which engines scripts are.
type Options struct {
	Foreign bool // clients which are not holdfast may want the same locks
	History bool // what happens is written down
	Cluster bool // what is touched has to be declared
}

// ForEngine returns the scripts of an engine.
func ForEngine(o Options) Engine {
	k := kit{o.History}
	// Each piece stands behind those that it needs.
	const leases = "value clock state "
	var (
		feed, events = k.only("feed "), k.only("plain_feed ")
		serve        = k.only("remember ") + "queue yield serve "
		others       = "foreign "
		lost         = k.only(" lost")
		inboxes      = k.only("inboxes ")
		declared     = "" // of a key whose name a plain script makes, because that costs less than to send it
	)
	if !o.Foreign {
		others = "no_foreign "
	}
	if o.Cluster {
		declared = k.only(" history")
	}
	queues := others + leases + serve
	state := keys.State + k.only(" history")
	cancellable := state + " cancelled"
	return Engine{
		Acquire:    k.build(feed+"join "+queues+"request acquire", cancellable, serving+"lead waiter_ttl once inbox | "+request).again(),
		AcquireAll: k.build(feed+queues+"request acquire_all", "| "+cancellable, serving+"lead | "+request).again(),
		Refresh:    k.build(feed+queues+"refresh", "| "+state, serving+"| id waiter_ttl").again(),
		Release:    k.build(feed+others+"handover "+leases+serve+"end release", cancellable, serving+"id keep_for cancel_memory"+lost),
		Downgrade:  k.build(feed+queues+"downgrade", state, serving+"id"),
		Complete:   k.build(feed+queues+"end complete", state, serving+"id data retention from"),
		Break: k.build(feed+queues+"end break", state+" broken",
			serving+"id token older closed from break_memory most_breaks about message lift").again(),
		Breaks:  k.build("clock breaks", "broken", "").again(),
		History: k.build(feed+queues+"history", state, serving).again(),
		Extend:  k.build(leases+"extend", "| lock holders waiters detail", "| id ttl").again(),

		Recall:      k.build("recall", "record", "").again(),
		Records:     k.build("records", "| record", "head").again(),
		Inspect:     k.build("value inspect", "| lock fence holders queue waiters detail", "places from").again(),
		InspectRest: k.build("inspect_rest", "holders detail", "cursor group").again(),

		ExtendAlone:  k.build("value extend_alone", "lock", "id ttl"),
		ReleaseAlone: k.build("value "+k.only("clock ")+"release_alone", "lock", "id keep_for"+k.only(" lost remember")),

		// A repeat of a plain acquire is answered by the full script.
		PlainAcquire: k.build(feed+events+"plain_acquire", "| lock fence detail cancelled"+declared, "token_memory "+inboxes+"| id ttl holder"),
		PlainRelease: k.build(feed+events+"plain_release", "| lock detail"+declared, inboxes+"| id"),
		PlainRenew:   k.build("plain_renew", "| lock", "| id ttl").again(),

		Deposit: k.build("vault vault_deposit", keys.Vault, "id data ttl memory"),
		Redeem:  k.build("vault vault_redeem", keys.Vault, "id grace"),
		Peek:    k.build("vault vault_peek", keys.Vault, "").again(),
		Revoke:  k.build("vault vault_revoke", keys.Vault, ""),
	}
}

// Member are the scripts of a member of a quorum.
type Member struct{ Propose, Renew, Withdraw, Admit *Script }

// ForMember returns the scripts of a member.
func ForMember() Member {
	var k kit
	const member = "value clock member "
	return Member{
		Propose: k.build(member+"member_propose", keys.Lease+" detail marker",
			"id ttl token replaces lead lag quarantine token_memory holder"),
		Renew: k.build(member+"member_renew", "marker | "+keys.Lease+" detail",
			"token_memory lead | id ttl repair token quarantine since holder"),
		Withdraw: k.build(member+"member_withdraw", keys.Lease, "id token lift keep_for cancel_memory token_memory"),
		Admit:    k.build(member+"member_admit", "marker", ""),
	}
}
