package redislock

import (
	_ "embed"
	"fmt"
)

var (
	//go:embed value.lua
	valueLua string
	//go:embed clock.lua
	clockLua string
	//go:embed state.lua
	stateLua string
	//go:embed queue.lua
	queueLua string
	//go:embed yield.lua
	yieldLua string
	//go:embed serve.lua
	serveLua string
	//go:embed request.lua
	requestLua string
	//go:embed finish.lua
	finishLua string
	//go:embed acquire.lua
	acquireLua string
	//go:embed acquire_all.lua
	acquireAllLua string
	//go:embed extend.lua
	extendLua string
	//go:embed extend_alone.lua
	extendAloneLua string
	//go:embed release_alone.lua
	releaseAloneLua string
	//go:embed refresh.lua
	refreshLua string
	//go:embed release.lua
	releaseLua string
	//go:embed downgrade.lua
	downgradeLua string
	//go:embed break.lua
	breakLua string
	//go:embed breaks.lua
	breaksLua string
	//go:embed complete.lua
	completeLua string
	//go:embed recall.lua
	recallLua string
	//go:embed inspect.lua
	inspectLua string
	//go:embed inspect_rest.lua
	inspectRestLua string
	//go:embed vault.lua
	vaultLua string
	//go:embed vault_deposit.lua
	depositLua string
	//go:embed vault_redeem.lua
	redeemLua string
	//go:embed vault_peek.lua
	peekLua string
	//go:embed vault_revoke.lua
	revokeLua string
)

// scripts are the engine's operations on the store; each is one atomic step
// and one round trip.
type scripts struct {
	acquire, acquireAll, extend, refresh, release, downgrade, complete, recall, inspect, inspectRest, extendAlone, releaseAlone *script

	breakLeases, breaks *script

	deposit, redeem, peek, revoke *script // one-time tokens
}

// foreign says that clients which are not holdfast may want the same locks.
func newScripts(foreign bool) scripts {
	serveLua := fmt.Sprintf("local FOREIGN = %t\n", foreign) + yieldLua + serveLua
	return scripts{
		acquire:     newScript(valueLua, clockLua, stateLua, queueLua, serveLua, requestLua, acquireLua),
		acquireAll:  newScript(valueLua, clockLua, stateLua, queueLua, serveLua, requestLua, acquireAllLua),
		extend:      newScript(valueLua, clockLua, stateLua, extendLua),
		refresh:     newScript(valueLua, clockLua, stateLua, queueLua, serveLua, refreshLua),
		release:     newScript(valueLua, clockLua, stateLua, queueLua, serveLua, finishLua, releaseLua),
		downgrade:   newScript(valueLua, clockLua, stateLua, queueLua, serveLua, downgradeLua),
		complete:    newScript(valueLua, clockLua, stateLua, queueLua, serveLua, finishLua, completeLua),
		breakLeases: newScript(valueLua, clockLua, stateLua, queueLua, serveLua, finishLua, breakLua),
		breaks:      newScript(clockLua, breaksLua),
		recall:      newScript(recallLua),
		inspect:     newScript(inspectLua),
		inspectRest: newScript(inspectRestLua),

		extendAlone:  newScript(valueLua, extendAloneLua),
		releaseAlone: newScript(valueLua, releaseAloneLua),

		deposit: newScript(vaultLua, depositLua),
		redeem:  newScript(vaultLua, redeemLua),
		peek:    newScript(vaultLua, peekLua),
		revoke:  newScript(vaultLua, revokeLua),
	}
}

// mayRepeat reports whether a script answers a repeat as it did the first time
// (INVARIANT I6), so that the engine may send it again on a new connection. Of
// a script that ends something, the repeat would say that it is not there.
func (s *scripts) mayRepeat(script *script) bool {
	switch script {
	case s.acquire, s.acquireAll, s.extend, s.refresh, s.breakLeases, s.breaks, s.recall, s.inspect, s.inspectRest, s.peek:
		return true
	}
	return false
}
