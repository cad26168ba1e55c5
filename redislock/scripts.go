package redislock

import (
	_ "embed"

	"github.com/redis/rueidis"
)

var (
	//go:embed value.lua
	valueLua string
	//go:embed acquire.lua
	acquireLua string
	//go:embed extend.lua
	extendLua string
	//go:embed release.lua
	releaseLua string
	//go:embed inspect.lua
	inspectLua string
)

// scripts are the engine's operations on the store; each is one atomic step
// and one round trip. They are sent by their hash, and in full only when the
// server answers that it does not know the hash, which it does before it runs
// anything.
type scripts struct {
	acquire, extend, release, inspect *rueidis.Lua
}

func newScripts() scripts {
	// Not the Retryable kind: the client must not send a request twice on its
	// own, because the holder's deadline counts from the first sending.
	load := func(script string) *rueidis.Lua { return rueidis.NewLuaScript(valueLua + script) }
	return scripts{
		acquire: load(acquireLua),
		extend:  load(extendLua),
		release: load(releaseLua),
		inspect: rueidis.NewLuaScript(inspectLua),
	}
}
