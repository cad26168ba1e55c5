package mutant

// redis returns a requirement of enginetest as package redislock runs it.
func redis(requirement string) Finder { return conformance("redislock", requirement) }

// redisLeaseMutants are faults of the engine for Redis: of leases and tokens.
func redisLeaseMutants() []Mutant {
	return []Mutant{
		{
			Name: "redis-id-by-prefix", Invariant: "I4", File: "rediscore/internal/lua/serve.lua",
			Breaks:  "Lease IDs are compared by their first half.",
			Old:     "if s.lock and s.lock.id == id then",
			New:     "if s.lock and s.lock.id and string.sub(s.lock.id, 1, 16) == string.sub(id, 1, 16) then",
			FoundBy: []Finder{redis("ReleaseComparesWholeID")},
		},
		{
			Name: "redis-pexpire-without-owner", Invariant: "I4", File: "rediscore/internal/lua/extend.lua",
			Breaks:  "Extend sets the expiry of the key without a look at whose lease it is.",
			Old:     "if s.lock.id == id then",
			New:     "if s.lock.id then",
			FoundBy: []Finder{redis("ExtendOfStaleLeavesSuccessor")},
		},
		{
			Name: "redis-extend-revives", Invariant: "I4", File: "rediscore/internal/lua/extend.lua",
			Breaks:  "Extend of a lease that has expired makes it anew.",
			Old:     "if not s.lock then\n    return 0\n  end",
			New:     "if not s.lock then\n    write(s.key, id, '1', ttl, '{}')\n    return 1\n  end",
			FoundBy: []Finder{redis("ExtendOfExpiredIsLost"), redis("ExtendOfReleasedIsLost")},
		},
		{
			Name: "redis-release-by-name", Invariant: "I4", File: "rediscore/internal/lua/release.lua",
			Breaks:  "Release ends the lease of whoever holds the name.",
			Old:     "local h = lease(s, id)",
			New:     "local h = lease(s, id) or s.lock",
			FoundBy: []Finder{redis("ReleaseOfStaleLeavesSuccessor")},
		},
		{
			Name: "redis-shortens", Invariant: "I6", File: "rediscore/internal/lua/value.lua",
			Breaks:  "A repeat or an extend with a shorter TTL shortens the lease.",
			Old:     "if lock.left < tonumber(ttl) then",
			New:     "if lock.left ~= tonumber(ttl) then",
			FoundBy: []Finder{redis("RepeatNeverShortens"), redis("ExtendNeverShortens")},
		},
		{
			Name: "redis-repeat-draws-token", Invariant: "I6", File: "rediscore/internal/lua/request.lua",
			Breaks:  "A repeat of a granted request draws a new token.",
			Old:     "return { 1, tonumber(h.token) }",
			New:     "local token = drawToken(s, r.min)\n  grant(s, r, token, r.ttl)\n  return { 1, tonumber(token) }",
			FoundBy: []Finder{redis("RepeatIsGrantedAgain"), {"systest", "TestRepeatedRequestGetsTheSameToken"}},
		},
		{
			Name: "redis-token-from-incr", Invariant: "I2", File: "rediscore/internal/lua/serve.lua",
			Breaks:  "The token is a counter that knows no clock, and begins again when the data is lost.",
			Old:     "math.max(tonumber(last) + 1, micros(), tonumber(min) + 1)",
			New:     "math.max(tonumber(last) + 1, tonumber(min) + 1)",
			FoundBy: []Finder{{"redislock", "TestTokensInFull"}},
		},
		{
			Name: "redis-token-forgotten", Invariant: "I2", File: "rediscore/internal/lua/serve.lua",
			Breaks:  "The last token is forgotten with the lease that it was given to.",
			Old:     "redis.call('SET', s.fence, token, 'PXAT', num(math.floor(tonumber(token) / 1000) + tonumber(ARGV[TOKEN_MEMORY])))",
			New:     "redis.call('SET', s.fence, token, 'PX', '1000')",
			FoundBy: []Finder{{"redislock", "TestTokenMemory"}},
		},
		{
			Name: "redis-token-memory-ignored", Invariant: "I2", File: "rediscore/operations.go",
			Breaks:  "Options.TokenMemory counts for plain requests only.",
			Old:     "e.memory, e.store.keys.Inboxes()",
			New:     "form.MS(driver.TokenMemory), e.store.keys.Inboxes()",
			FoundBy: []Finder{{"redislock", "TestTokenMemory"}},
		},
		{
			Name: "redis-token-memory-not-plain", Invariant: "I2", File: "rediscore/engine.go",
			Breaks:  "Plain requests do not hear of Options.TokenMemory.",
			Old:     "e.plain = newPlain(store, e.scripts, e.memory, o.History)",
			New:     "e.plain = newPlain(store, e.scripts, form.MS(driver.TokenMemory), o.History)",
			FoundBy: []Finder{{"redislock", "TestTokenMemory"}},
		},
		{
			Name: "redis-min-token-ignored", Invariant: "I2", File: "rediscore/internal/lua/serve.lua",
			Breaks:  "MinToken does not lift the next token.",
			Old:     "micros(), tonumber(min) + 1)",
			New:     "micros())",
			FoundBy: []Finder{redis("MinTokenLiftsToken")},
		},
		{
			Name: "redis-no-tombstone", Invariant: "I5", File: "rediscore/internal/lua/release.lua",
			Breaks:  "The cancel of an acquire is not remembered, so that a request that it has overtaken is granted.",
			Old:     "remember = redis.pcall('SET', KEYS[CANCELLED], '', 'PX', ARGV[CANCEL_MEMORY]).err or ''",
			New:     "remember = ''",
			FoundBy: []Finder{redis("CancelStopsLateAcquire"), {"systest", "TestZombieAfterReleaseLeavesNoOrphan"}},
		},
		{
			Name: "redis-foreign-lock-overwritten", Invariant: "I1", File: "rediscore/internal/lua/serve.lua",
			Breaks:  "The lock of a client that uses SET NX is taken for free.",
			Old:     "if not s.lock then\n    return true\n  end\n  return s.mine",
			New:     "if not s.lock or not s.lock.limit then\n    return true\n  end\n  return s.mine",
			FoundBy: []Finder{{"redislock", "TestInterop"}},
		},
		{
			Name: "redis-complete-without-lease", Invariant: "I4", File: "rediscore/internal/lua/complete.lua",
			Breaks:  "Do-once work stores its result although its lease is lost.",
			Old:     "sweep(s)\n  return 0\nend",
			New:     "redis.call('SET', s.record, ARGV[DATA], 'PX', ARGV[RETENTION])\n  return 1\nend",
			FoundBy: []Finder{redis("CompleteOfLostIsLost"), redis("CompleteOfStaleOverwritesNothing")},
		},
		{
			Name: "redis-record-not-seen", Invariant: "", File: "rediscore/internal/lua/acquire.lua",
			Breaks:  "Do-once work runs although its result is stored.",
			Old:     "local record = ARGV[ONCE] == '1' and redis.call('GET', s.record)",
			New:     "local record = false",
			FoundBy: []Finder{redis("OnceIsAnsweredRecorded")},
		},
		{
			Name: "redis-redeem-does-not-consume", Invariant: "", File: "rediscore/internal/lua/vault_redeem.lua",
			Breaks:  "A one-time token can be redeemed again.",
			Old:     "become('redeemed ' .. by .. ' ' .. ARGV[ID])",
			New:     "become('fresh ' .. by)",
			FoundBy: []Finder{redis("RedeemHandsOutOnce"), {"redislock", "TestRedeemByMany"}},
		},
		{
			Name: "redis-clock-back-lasts", Invariant: "I8", File: "rediscore/internal/lua/value.lua",
			Breaks:  "A lease lasts as much longer as the server's clock goes back.",
			Old:     "if lock.id and (lock.left < 0 or lock.left > lock.ttl) then",
			New:     "if lock.id and lock.left < 0 then",
			FoundBy: []Finder{{"redislock", "TestClockStepBack"}},
		},
	}
}

// redisQueueMutants are faults of the engine for Redis: of the queue, and of
// locks that several may have.
func redisQueueMutants() []Mutant {
	return []Mutant{
		{
			Name: "redis-release-serves-nobody", Invariant: "I7", File: "rediscore/internal/lua/end.lua",
			Breaks:  "A release does not hand the lock over: the next waiter finds out when it looks.",
			Old:     "pcall(serve, s)",
			New:     "",
			FoundBy: []Finder{redis("WatchTellsGrant")},
		},
		{
			Name: "redis-lost-wake-up", Invariant: "I7", File: "rediscore/internal/lua/serve.lua",
			Breaks:  "A waiter that is handed the lock is not told.",
			Old:     "tell(n[1], n[2], n[3])",
			New:     "",
			FoundBy: []Finder{redis("WatchTellsGrant")},
		},
		{
			Name: "redis-barging", Invariant: "I7", File: "rediscore/internal/lua/request.lua",
			Breaks:  "A new request that fits is granted in front of those who wait.",
			Old:     "if s.places > 0 or not fits(s, r) then",
			New:     "if not fits(s, r) then",
			FoundBy: []Finder{redis("SharedDoesNotOvertakeExclusive")},
		},
		{
			Name: "redis-last-comes-first", Invariant: "I7", File: "rediscore/internal/lua/queue.lua",
			Breaks:  "A new place is put at the head of the queue.",
			Old:     "redis.call('ZADD', s.queue, s.number, p.id)",
			New:     "redis.call('ZADD', s.queue, num(9007199254740991 - micros()), p.id)",
			FoundBy: []Finder{redis("SemaphoreServesInOrder")},
		},
		{
			Name: "redis-dead-waiters-stay", Invariant: "I7", File: "rediscore/internal/lua/queue.lua",
			Breaks:  "The place of a waiter that died is never given up.",
			Old:     "giveUpPlaces(s, s.places > 0 and take(",
			New:     "giveUpPlaces(s, s.places < 0 and take(",
			FoundBy: []Finder{redis("QueuePlaceIsGivenUp")},
		},
		{
			Name: "redis-reader-shortens-others", Invariant: "I6", File: "rediscore/internal/lua/state.lua",
			Breaks:  "The leases of all readers end with the first of them.",
			Old:     "local last = redis.call('ZRANGE', s.holders, -1, -1, 'WITHSCORES')[2]",
			New:     "local last = redis.call('ZRANGE', s.holders, 0, 0, 'WITHSCORES')[2]",
			FoundBy: []Finder{{"redislock", "TestKeyEndsWithLastLease"}},
		},
		{
			Name: "redis-permits-leak", Invariant: "I1", File: "rediscore/internal/lua/state.lua",
			Breaks:  "Permits that are given back stay taken.",
			Old:     "s.used = s.used - permits",
			New:     "",
			FoundBy: []Finder{redis("SemaphorePermitsComeBackOneByOne")},
		},
		{
			Name: "redis-permits-not-counted", Invariant: "I1", File: "rediscore/internal/lua/serve.lua",
			Breaks:  "A semaphore with one permit left grants a request for several.",
			Old:     "s.used + r.permits <= r.limit",
			New:     "s.used <= r.limit - (r.limit > 0 and 1 or 0)",
			FoundBy: []Finder{redis("SemaphoreCountsPermits")},
		},
		{
			Name: "redis-downgrade-wakes-nobody", Invariant: "I7", File: "rediscore/internal/lua/downgrade.lua",
			Breaks:  "Readers that wait are not let in when the writer becomes a reader.",
			Old:     "pcall(serve, s)",
			New:     "",
			FoundBy: []Finder{redis("DowngradeHandsOver")},
		},
		{
			Name: "redis-acquire-all-takes-some", Invariant: "I5", File: "rediscore/internal/lua/acquire_all.lua",
			Breaks:  "AcquireAll in one step keeps the locks in front of the one that it could not have.",
			Old:     "states[i + 1], requests[i + 1] = s, r\n",
			New:     "states[i + 1], requests[i + 1] = s, r\n  if not r.held then\n    grant(s, r, r.token, r.ttl)\n  end\n",
			FoundBy: []Finder{redis("AcquireAllTakesAllOrNone")},
		},
		{
			Name: "redis-doubts-every-subscription", Invariant: "I7", File: "rediscore/inbox.go",
			Breaks:  "A grant from before the subscription is taken for a message that was lost, and the subscription is made anew.",
			Old:     "owed = i.hears && h.waiting == i.made && !h.granted",
			New:     "owed = true",
			FoundBy: []Finder{{"rediscore", "TestOwedMessage"}},
		},
		{
			Name: "redis-hand-over-outlasts-place", Invariant: "I7", File: "rediscore/internal/lua/serve.lua",
			Breaks:  "A lease that is handed to a waiter that died lasts for longer than its place.",
			Old:     "putExclusive(s, heirs[1], heirs[1].token, heirs[1].ttl, heirs[1].ends)",
			New:     "putExclusive(s, heirs[1], heirs[1].token, 2 * heirs[1].ttl)",
			FoundBy: []Finder{{"redislock", "TestHandOverToOne/token_ahead"}},
		},
		{
			Name: "redis-refresh-creates", Invariant: "I7", File: "rediscore/internal/lua/refresh.lua",
			Breaks:  "A refresh of a place that was given up makes another.",
			Old:     "return { -5 }",
			New:     "return { 0, 1, '', 1 }",
			FoundBy: []Finder{redis("RefreshNeverCreates")},
		},
		{
			Name: "redis-places-outlast-clock-back", Invariant: "I8", File: "rediscore/internal/lua/state.lua",
			Breaks:  "Places and shared leases last as much longer as the server's clock goes back.",
			Old:     "local back = clock > 0 or s.seen > millis()",
			New:     "local back = clock > 0",
			FoundBy: []Finder{{"redislock", "TestClockStepBackWithQueue"}},
		},
		{
			Name: "redis-kind-not-checked", Invariant: "I12", File: "rediscore/internal/lua/request.lua",
			Breaks:  "A semaphore is used with two limits.",
			Old:     "if kind and kind ~= r.limit then",
			New:     "if kind and kind ~= r.limit and kind == 0 then",
			FoundBy: []Finder{redis("SemaphoreChecksKind")},
		},
	}
}
