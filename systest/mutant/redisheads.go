package mutant

// layoutMutants are faults of the engine for Redis with names that another
// version keeps in another layout.
func layoutMutants() []Mutant {
	unknown := Finder{"redislock", "TestUnknownLayout"}
	return []Mutant{
		{
			Name: "redis-unknown-layout-is-free", Invariant: "I1", File: "rediscore/internal/lua/value.lua",
			Breaks:  "A lock that another version of holdfast has in another layout is taken for free.",
			Old:     "  lock.unknown = unknown(value)\n",
			New:     "  if unknown(value) then\n    return nil\n  end\n",
			FoundBy: []Finder{unknown, {"redislock", "TestRollingUpgrade"}},
		},
		{
			Name: "redis-unknown-layout-is-foreign", Invariant: "I10", File: "rediscore/internal/lua/value.lua",
			Breaks:  "A lock of another version of holdfast shows as that of a client which is not holdfast.",
			Old:     "  lock.unknown = unknown(value)\n",
			New:     "",
			FoundBy: []Finder{unknown},
		},
		{
			Name: "redis-layout-without-number-unknown", Invariant: "I10", File: "rediscore/internal/lua/value.lua",
			Breaks:  "A lock of the first layout, which had no number, shows as that of a client which is not holdfast.",
			Old:     "return id and #id == 32 and number ~= 'THIS_LAYOUT'",
			New:     "return id and #id == 32 and number ~= '1' and number ~= 'THIS_LAYOUT'",
			FoundBy: []Finder{unknown},
		},
		{
			Name: "redis-unknown-detail-not-seen", Invariant: "I1", File: "rediscore/internal/lua/value.lua",
			Breaks:  "The queue of another version is served, or deleted, as if it were in our layout.",
			Old:     "if layout ~= 'THIS_LAYOUT' and",
			New:     "if layout and layout ~= 'THIS_LAYOUT' and layout ~= '4' and",
			FoundBy: []Finder{{"redislock", "TestUnknownDetail"}},
		},
		{
			Name: "redis-guard-overwrites-lock", Invariant: "", File: "rediscore/redisfence/guard.lua",
			Breaks:  "A guard overwrites the lock of the lease that it is shown, because it does not know the lock's layout.",
			Old:     "'^%d* ?' ..",
			New:     "'^' ..",
			FoundBy: []Finder{{"redislock", "TestGuardOfLease"}},
		},
	}
}

// joinMutants are faults of the head of acquire.lua, for locks that another has.
func joinMutants() []Mutant {
	const join = "rediscore/internal/lua/join.lua"
	return []Mutant{
		{
			Name: "redis-join-once", Invariant: "", File: join,
			Breaks:  "Work that is done waits for its turn instead of being told the record, behind a lease.",
			Old:     "ARGV[ONCE] == '0' and ARGV[HEAD_ARGS + LIMIT]",
			New:     "ARGV[HEAD_ARGS + LIMIT]",
			FoundBy: []Finder{{"redislock", "TestJoinBehindLease/done"}},
		},
		{
			Name: "redis-join-without-min-token", Invariant: "I2", File: join,
			Breaks:  "A place forgets the MinToken of its request.",
			Old:     " and ARGV[HEAD_ARGS + MIN_TOKEN] == '0' then",
			New:     " then",
			FoundBy: []Finder{{"redislock", "TestJoinBehindLease/min_token"}},
		},
		{
			Name: "redis-join-of-any-kind", Invariant: "I12", File: join,
			Breaks:  "A permit of a semaphore waits for a mutex, or is told that it is held.",
			Old:     "ARGV[HEAD_ARGS + LIMIT] == '0' and ",
			New:     "",
			FoundBy: []Finder{{"redislock", "TestJoinBehindLease/kind"}},
		},
		{
			Name: "redis-join-cancelled", Invariant: "I5", File: join,
			Breaks:  "A request that was cancelled joins the queue behind a lease.",
			Old:     "redis.call('EXISTS', detail, detail, KEYS[CANCELLED])",
			New:     "redis.call('EXISTS', detail, detail)",
			FoundBy: []Finder{{"redislock", "TestJoinBehindLease/cancelled"}},
		},
		{
			Name: "redis-join-behind-foreign", Invariant: "I10", File: join,
			Breaks:  "Another client's value that looks a little like a lease shows as one.",
			Old:     "id and #id == 32 and id ~= own and",
			New:     "id and id ~= own and",
			FoundBy: []Finder{{"redislock", "TestJoinBehindLease/not_ours"}},
		},
		{
			Name: "redis-join-own-lease", Invariant: "I6", File: join,
			Breaks:  "A repeat of a granted request waits for its own lease.",
			Old:     "#id == 32 and id ~= own and",
			New:     "#id == 32 and",
			FoundBy: []Finder{redis("RepeatIsGrantedAgain")},
		},
		{
			Name: "redis-join-behind-endless-lease", Invariant: "I8", File: join,
			Breaks:  "A lease that somebody took the expiry away from is in the way for ever.",
			Old:     "left >= 0 and left <= tonumber(ttl)",
			New:     "left <= tonumber(ttl)",
			FoundBy: []Finder{{"redislock", "TestJoinBehindLease/no_expiry"}},
		},
		{
			Name: "redis-join-behind-late-lease", Invariant: "I8", File: join,
			Breaks:  "A lease whose expiry is too far away keeps those who ask waiting for longer than its TTL.",
			Old:     "left >= 0 and left <= tonumber(ttl)",
			New:     "left >= 0",
			FoundBy: []Finder{{"redislock", "TestJoinBehindLease/expiry_too_late"}},
		},
		{
			Name: "redis-join-after-clock-back", Invariant: "I8", File: join,
			Breaks:  "A new place hides that the clock went back, and the places of the dead last on.",
			Old:     "#(known[2] or '') == #now and known[2] <= now",
			New:     "true",
			FoundBy: []Finder{{"redislock", "TestJoinBehindLease/clock_back"}},
		},
		{
			Name: "redis-join-in-front", Invariant: "I7", File: join,
			Breaks:  "After the clock went back, who comes later gets a place in front of those who wait.",
			Old:     " or #(known[3] or '') ~= #clock or known[3] >= clock then",
			New:     " then",
			FoundBy: []Finder{{"redislock", "TestJoinBehindLease/clock_back_behind_the_last_place"}},
		},
		{
			Name: "redis-join-at-the-head", Invariant: "I7", File: join,
			Breaks:  "A new place behind a lease is put at the head of the queue.",
			Old:     "redis.call('ZADD', KEYS[QUEUE], clock, own)",
			New:     "redis.call('ZADD', KEYS[QUEUE], string.format('%.0f', 9007199254740991 - tonumber(clock)), own)",
			FoundBy: []Finder{redis("QueueServesInOrder")},
		},
		{
			Name: "redis-join-twice", Invariant: "I7", File: join,
			Breaks:  "A repeated request loses its place, and gets the last.",
			Old:     "elseif known[5] or #",
			New:     "elseif #",
			FoundBy: []Finder{redis("QueueKeepsPlace"), {"redislock", "TestJoinBehindLease/repeat"}},
		},
		{
			Name: "redis-join-behind-the-dead", Invariant: "I7", File: join,
			Breaks:  "A new place counts those whose time is over.",
			Old:     "'(' .. now, '+inf') == places",
			New:     "'-inf', '+inf') == places",
			FoundBy: []Finder{{"redislock", "TestJoinBehindLease/dead_place"}},
		},
		{
			Name: "redis-join-the-lost", Invariant: "I7", File: join,
			Breaks:  "A new place is put behind places that lost a part because somebody deleted a key.",
			Old:     "redis.call('ZCOUNT', KEYS[WAITERS], '(' .. now, '+inf') == places",
			New:     "places > 0",
			FoundBy: []Finder{{"redislock", "TestJoinBehindLease/no_waiters"}},
		},
		{
			Name: "redis-join-without-detail", Invariant: "I7", File: join,
			Breaks:  "A new place is put behind places of which nothing is known any more.",
			Old:     "plain = plain and redis.call('EXISTS', KEYS[QUEUE], KEYS[WAITERS], KEYS[HOLDERS]) == 0",
			New:     "plain = plain",
			FoundBy: []Finder{{"redislock", "TestJoinBehindLease/no_detail"}},
		},
		{
			Name: "redis-join-other-layout", Invariant: "I1", File: join,
			Breaks:  "A request is told to wait, or joins the queue, where another version keeps the queue in another layout.",
			Old:     "== (ours and 2 or 0)",
			New:     "% 2 == 0",
			FoundBy: []Finder{{"redislock", "TestJoinBehindLease/other_layout"}},
		},
		{
			Name: "redis-join-made-without-layout", Invariant: "I1", File: join,
			Breaks:  "The first place makes companions that do not say in which layout they are.",
			Old:     ", 'layout', 'THIS_LAYOUT')",
			New:     ")",
			FoundBy: []Finder{{"redislock", "TestJoinBehindLease/repeat"}},
		},
		{
			Name: "redis-join-lasts-too-short", Invariant: "I7", File: join,
			Breaks:  "A place with a long TTL is lost with the first ones.",
			Old:     "local short = not ours or ends > tonumber(known[4] or 0)",
			New:     "local short = not ours",
			FoundBy: []Finder{{"redislock", "TestJoinBehindLease/long_place"}},
		},
		{
			Name: "redis-join-lasts-for-ever", Invariant: "I11", File: join,
			Breaks:  "The companions of places have no expiry.",
			Old:     "        redis.call('PEXPIRE', detail, ms)\n",
			New:     "",
			FoundBy: []Finder{{"redislock", "TestJoinBehindLease/long_place"}},
		},
	}
}

// handOverMutants are faults of the head of release.lua, for locks that are handed
// to one who waits.
func handOverMutants() []Mutant {
	const handOver = "rediscore/internal/lua/handover.lua"
	return []Mutant{
		{
			Name: "redis-hand-over-kept-closed", Invariant: "", File: handOver,
			Breaks:  "A lock that is to be kept closed is handed to the next.",
			Old:     "ARGV[KEEP_FOR] == '0' and ",
			New:     "",
			FoundBy: []Finder{{"redislock", "TestHandOverToOne/kept_closed"}},
		},
		{
			Name: "redis-hand-over-forgets-cancel", Invariant: "I5", File: handOver,
			Breaks:  "A cancel that hands the lock over is not remembered.",
			Old:     "ARGV[CANCEL_MEMORY] == '0' and ",
			New:     "",
			FoundBy: []Finder{{"redislock", "TestHandOverToOne/cancel"}},
		},
		{
			Name: "redis-hand-over-by-prefix", Invariant: "I4", File: handOver,
			Breaks:  "A release compares the lease ID in part.",
			Old:     "string.sub(value, 1, 35) == 'THIS_LAYOUT ' .. ARGV[ID] .. ' '",
			New:     "string.sub(value, 1, 33) == 'THIS_LAYOUT ' .. string.sub(ARGV[ID], 1, 31)",
			FoundBy: []Finder{{"redislock", "TestHandOverToOne/almost_the_ID"}},
		},
		{
			Name: "redis-hand-over-other-layout", Invariant: "I1", File: handOver,
			Breaks:  "The lock is handed to a waiter of another version, which reads its lease in another way.",
			Old:     "known[1] == 'THIS_LAYOUT' and not known[2]",
			New:     "not known[2]",
			FoundBy: []Finder{{"redislock", "TestHandOverToOne/other_layout"}},
		},
		{
			Name: "redis-hand-over-leaves-once", Invariant: "", File: handOver,
			Breaks:  "A waiter for work that is done is not told when it becomes the head.",
			Old:     "known[1] == 'THIS_LAYOUT' and not known[2] and",
			New:     "known[1] == 'THIS_LAYOUT' and",
			FoundBy: []Finder{{"redislock", "TestHandOverToOne/once_behind_the_heir"}},
		},
		{
			Name: "redis-hand-over-after-clock-back", Invariant: "I8", File: handOver,
			Breaks:  "After the clock went back a lease that is handed over lasts for longer than it should.",
			Old:     "tonumber(known[3] or 0) <= now and ends",
			New:     "ends",
			FoundBy: []Finder{{"redislock", "TestHandOverToOne/clock_back"}},
		},
		{
			Name: "redis-hand-over-to-the-dead", Invariant: "I7", File: handOver,
			Breaks:  "The lock is handed to a waiter whose place is over.",
			Old:     " and ends and tonumber(ends) > now",
			New:     " and ends",
			FoundBy: []Finder{{"redislock", "TestHandOverToOne/dead_head"}},
		},
		{
			Name: "redis-hand-over-to-the-lost", Invariant: "I7", File: handOver,
			Breaks:  "The lock is handed to a waiter whose place lost a part because somebody deleted a key.",
			Old:     "local ends = ttl and redis.call('ZSCORE', KEYS[WAITERS], id)",
			New:     "local ends = ttl and (redis.call('ZSCORE', KEYS[WAITERS], id) or string.format('%.0f', redis.call('TIME')[1] * 1000 + ttl))",
			FoundBy: []Finder{{"redislock", "TestHandOverToOne/no_waiters"}},
		},
		{
			Name: "redis-hand-over-shared", Invariant: "I1", File: handOver,
			Breaks:  "A reader that waits is handed the lock alone.",
			Old:     "'^(%d+) 0 0 0 0 0 %d+ (%x*) (.*)$'",
			New:     "'^(%d+) %d 0 0 0 0 %d+ (%x*) (.*)$'",
			FoundBy: []Finder{{"redislock", "TestHandOverToOne/shared_head"}},
		},
		{
			Name: "redis-hand-over-without-min-token", Invariant: "I2", File: handOver,
			Breaks:  "A waiter is handed a token that its MinToken forbids.",
			Old:     "'^(%d+) 0 0 0 0 0 %d+ (%x*) (.*)$'",
			New:     "'^(%d+) 0 0 0 %d+ 0 %d+ (%x*) (.*)$'",
			FoundBy: []Finder{{"redislock", "TestJoinBehindLease/min_token"}},
		},
		{
			Name: "redis-hand-over-token-of-clock", Invariant: "I2", File: handOver,
			Breaks:  "After the clock went back a hand-over repeats tokens.",
			Old:     "#last == #token and last < token and",
			New:     "#last == #token and",
			FoundBy: []Finder{{"redislock", "TestHandOverToOne/token_ahead"}},
		},
		{
			Name: "redis-hand-over-token-by-text", Invariant: "I2", File: handOver,
			Breaks:  "A last token with more digits than the clock is taken for a smaller one.",
			Old:     "#last == #token and last < token and",
			New:     "last < token and",
			FoundBy: []Finder{{"redislock", "TestHandOverToOne/no_token"}},
		},
		{
			Name: "redis-hand-over-token-of-text", Invariant: "I2", File: handOver,
			Breaks:  "A last token that is not a number is overwritten.",
			Old:     " and not string.find(last, '%D')) then",
			New:     ") then",
			FoundBy: []Finder{{"redislock", "TestHandOverToOne/no_token"}},
		},
		{
			Name: "redis-hand-over-leaves-keys", Invariant: "I11", File: handOver,
			Breaks:  "The last of a queue leaves the companions behind.",
			Old:     "if not first[2] then",
			New:     "if false then",
			FoundBy: []Finder{{"redislock", "TestHandOverToOne/last_place"}},
		},
		{
			Name: "redis-hand-over-keeps-token-for-ever", Invariant: "I11", File: handOver,
			Breaks:  "The last token that a hand-over has drawn is never forgotten.",
			Old:     "token, 'PX', ARGV[TOKEN_MEMORY])",
			New:     "token)",
			FoundBy: []Finder{{"redislock", "TestHandOverToOne/last_place"}},
		},
		{
			Name: "redis-hand-over-refused-by-full-server", Invariant: "I9", File: handOver,
			Breaks:  "A full server does not hand a lock over.",
			Old:     "      redis.call('ZREM', KEYS[QUEUE], id)\n      redis.call('ZREM', KEYS[WAITERS], id)\n      redis.call('HDEL', KEYS[DETAIL], 'w' .. id)\n      redis.call('SET', KEYS[FENCE], token, 'PX', ARGV[TOKEN_MEMORY])\n",
			New:     "      redis.call('SET', KEYS[FENCE], token, 'PX', ARGV[TOKEN_MEMORY])\n      redis.call('ZREM', KEYS[QUEUE], id)\n      redis.call('ZREM', KEYS[WAITERS], id)\n      redis.call('HDEL', KEYS[DETAIL], 'w' .. id)\n",
			FoundBy: []Finder{{"redislock", "TestHandOverToOne/memory_is_full"}},
		},
		{
			Name: "redis-hand-over-untold", Invariant: "I7", File: handOver,
			Breaks:  "A waiter that is handed the lock by the head of the release is not told.",
			Old:     "      redis.pcall('PUBLISH', ARGV[INBOXES] .. inbox, id .. ' ' .. token)\n",
			New:     "",
			FoundBy: []Finder{{"redislock", "TestContendedCommands"}},
		},
		{
			Name: "redis-hand-over-outlasts-place-too", Invariant: "I7", File: handOver,
			Breaks:  "A lease that is handed to a waiter that died lasts for longer than its place.",
			Old:     "'PXAT', ends)\n",
			New:     "'PX', 2 * ttl)\n",
			FoundBy: []Finder{{"redislock", "TestHandOverToOne/last_place"}},
		},
		{
			Name: "redis-hand-over-takes-every-turn", Invariant: "I7", File: handOver,
			Breaks:  "A lock that is handed on all the time is never left free for other clients.",
			Old:     "and now - tonumber(known[4]) < (known[5] and SHARE or TURNS))",
			New:     ")",
			FoundBy: []Finder{{"redislock", "TestHandOverBesideOthers"}},
		},
		{
			Name: "redis-hand-over-takes-longer-turns", Invariant: "I7", File: handOver,
			Breaks:  "Where other clients were seen, their turns come too seldom.",
			Old:     "(known[5] and SHARE or TURNS)",
			New:     "TURNS",
			FoundBy: []Finder{{"redislock", "TestHandOverBesideOthers"}},
		},
		{
			Name: "redis-hand-over-to-the-only-one-is-slow", Invariant: "", File: handOver,
			Breaks:  "A lock that is handed to and fro between two always goes the long way.",
			Old:     "or not known[4] or tonumber",
			New:     "or known[4] and tonumber",
			FoundBy: []Finder{{"redislock", "TestContendedCommands"}},
		},
		{
			Name: "redis-hand-over-counts-no-turns", Invariant: "I7", File: handOver,
			Breaks:  "It is not noted since when a lock is handed on.",
			Old:     "        redis.call('HSET', KEYS[DETAIL], 'ours', string.format('%.0f', now))\n",
			New:     "",
			FoundBy: []Finder{{"redislock", "TestHandOverBesideOthers"}},
		},
	}
}
