package lua

import "github.com/holdfast-locks/holdfast/rediscore/internal/keys"

// A row describes a script: the files that it is made of, and its Layout.
type row struct {
	pieces         string
	keys, eachKeys []keys.Kind
	args, eachArgs string
	repeats        bool
}

// Arguments that scripts have in common.
const (
	serving = "token_memory inboxes" // of all that may hand a lock over
	request = "id mode limit permits ttl min_token holder"
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
	// Each piece stands behind those that it needs.
	const leases = "value clock state"
	queues := leases + " queue foreign yield serve"
	if !foreign {
		queues = leases + " queue no_foreign yield serve"
	}
	state, token := keys.State(), keys.Vault()
	return Engine{
		Acquire: build(row{
			pieces: queues + " request acquire", keys: keys.State(keys.Cancelled),
			args: serving + " lead waiter_ttl once inbox", eachArgs: request, repeats: true,
		}),
		AcquireAll: build(row{
			pieces: queues + " request acquire_all", eachKeys: keys.State(keys.Cancelled),
			args: serving + " lead", eachArgs: request, repeats: true,
		}),
		Refresh: build(row{
			pieces: queues + " refresh", eachKeys: state, args: serving, eachArgs: "id waiter_ttl", repeats: true,
		}),
		Release: build(row{
			pieces: queues + " end release", keys: keys.State(keys.Cancelled), args: serving + " id keep_for cancel_memory",
		}),
		Downgrade: build(row{pieces: queues + " downgrade", keys: state, args: serving + " id"}),
		Complete:  build(row{pieces: queues + " end complete", keys: state, args: serving + " id data retention from"}),
		Break: build(row{
			pieces: queues + " end break", keys: keys.State(keys.Broken), repeats: true,
			args: serving + " id token older from break_memory most_breaks about message lift",
		}),
		Breaks: build(row{pieces: "clock breaks", keys: []keys.Kind{keys.Broken}, repeats: true}),
		Extend: build(row{
			pieces: leases + " extend", eachArgs: "id ttl", repeats: true,
			eachKeys: []keys.Kind{keys.Lock, keys.Holders, keys.Waiters, keys.Detail},
		}),

		Recall: build(row{pieces: "recall", keys: []keys.Kind{keys.Record}, repeats: true}),
		Inspect: build(row{
			pieces: "inspect", args: "places from", repeats: true,
			eachKeys: []keys.Kind{keys.Lock, keys.Fence, keys.Holders, keys.Queue, keys.Waiters, keys.Detail},
		}),
		InspectRest: build(row{
			pieces: "inspect_rest", keys: []keys.Kind{keys.Holders, keys.Detail}, args: "cursor group", repeats: true,
		}),

		ExtendAlone:  build(row{pieces: "value extend_alone", keys: []keys.Kind{keys.Lock}, args: "id ttl"}),
		ReleaseAlone: build(row{pieces: "value release_alone", keys: []keys.Kind{keys.Lock}, args: "id keep_for"}),

		Deposit: build(row{pieces: "vault vault_deposit", keys: token, args: "id data ttl memory"}),
		Redeem:  build(row{pieces: "vault vault_redeem", keys: token, args: "id grace"}),
		Peek:    build(row{pieces: "vault vault_peek", keys: token, repeats: true}),
		Revoke:  build(row{pieces: "vault vault_revoke", keys: token}),
	}
}

// Member are the scripts of a member of a quorum.
type Member struct{ Propose, Renew, Withdraw, Admit *Script }

// ForMember returns the scripts of a member.
func ForMember() Member {
	const member = "value clock member"
	return Member{
		Propose: build(row{
			pieces: member + " member_propose", keys: keys.Lease(keys.Queue, keys.Marker),
			args: "id ttl token replaces lead lag quarantine token_memory holder",
		}),
		Renew: build(row{
			pieces: member + " member_renew", keys: []keys.Kind{keys.Marker}, eachKeys: keys.Lease(keys.Queue),
			args: "token_memory lead", eachArgs: "id ttl repair token quarantine holder",
		}),
		Withdraw: build(row{
			pieces: member + " member_withdraw", keys: keys.Lease(), args: "id token lift keep_for cancel_memory token_memory",
		}),
		Admit: build(row{pieces: member + " member_admit", keys: []keys.Kind{keys.Marker}}),
	}
}
