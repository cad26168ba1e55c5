package redislock

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/redis/rueidis"
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
// and one round trip. They are sent by their hash, and in full only when the
// server answers that it does not know the hash, which it does before it runs
// anything.
type scripts struct {
	acquire, acquireAll, extend, refresh, release, downgrade, complete, recall, inspect, inspectRest, extendAlone, releaseAlone *rueidis.Lua

	breakLeases, breaks *rueidis.Lua

	deposit, redeem, peek, revoke *rueidis.Lua // one-time tokens

	acquireText string // of acquire
}

// foreign says that clients which are not holdfast may want the same locks.
func newScripts(foreign bool) scripts {
	// Not the Retryable kind: the client must not send a request twice on its
	// own, because the holder's deadline counts from the first sending.
	load := func(parts ...string) *rueidis.Lua { return rueidis.NewLuaScript(strings.Join(parts, "")) }
	serveLua := fmt.Sprintf("local FOREIGN = %t\n", foreign) + yieldLua + serveLua
	acquire := strings.Join([]string{valueLua, clockLua, stateLua, queueLua, serveLua, requestLua, acquireLua}, "")
	return scripts{
		acquire:     load(acquire),
		acquireText: acquire,
		acquireAll:  load(valueLua, clockLua, stateLua, queueLua, serveLua, requestLua, acquireAllLua),
		extend:      load(valueLua, clockLua, stateLua, extendLua),
		refresh:     load(valueLua, clockLua, stateLua, queueLua, serveLua, refreshLua),
		release:     load(valueLua, clockLua, stateLua, queueLua, serveLua, finishLua, releaseLua),
		downgrade:   load(valueLua, clockLua, stateLua, queueLua, serveLua, downgradeLua),
		complete:    load(valueLua, clockLua, stateLua, queueLua, serveLua, finishLua, completeLua),
		breakLeases: load(valueLua, clockLua, stateLua, queueLua, serveLua, finishLua, breakLua),
		breaks:      load(clockLua, breaksLua),
		recall:      load(recallLua),
		inspect:     load(inspectLua),
		inspectRest: load(inspectRestLua),

		extendAlone:  load(valueLua, extendAloneLua),
		releaseAlone: load(valueLua, releaseAloneLua),

		deposit: load(vaultLua, depositLua),
		redeem:  load(vaultLua, redeemLua),
		peek:    load(vaultLua, peekLua),
		revoke:  load(vaultLua, revokeLua),
	}
}

// mayRepeat reports whether a script answers a repeat as it did the first time
// (INVARIANT I6), so that the engine may send it again on a new connection. Of
// a script that ends something, the repeat would say that it is not there.
func (s *scripts) mayRepeat(script *rueidis.Lua) bool {
	switch script {
	case s.acquire, s.acquireAll, s.extend, s.refresh, s.breakLeases, s.breaks, s.recall, s.inspect, s.inspectRest, s.peek:
		return true
	}
	return false
}
