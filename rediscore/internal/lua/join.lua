-- join.lua: the head of acquire.lua for a lock that another lease has, exclusively:
-- the request joins the queue, or is refused. It stands in front of all else,
-- because every call makes all functions anew that stand in its way. What is not
-- plain goes on behind it, and nothing has changed until then.
--
-- KEYS, ARGV and reply as in acquire.lua.

local value = redis.pcall('GET', KEYS[LOCK])
do
  local own, id, ttl, granted, holder = ARGV[HEAD_ARGS + ID]
  if type(value) == 'string' and ARGV[ONCE] == '0' and ARGV[HEAD_ARGS + LIMIT] == '0' and ARGV[HEAD_ARGS + MIN_TOKEN] == '0' then
    id, ttl, granted, holder = string.match(value, '^THIS_LAYOUT ([0-9a-f]+) (%d+) %d+ (%d+) (.*)$')
  end
  local left = id and #id == 32 and id ~= own and redis.call('PTTL', KEYS[LOCK])
  -- A clock that went back shows here, or in 'seen'.
  if left and left >= 0 and left <= tonumber(ttl) then
    local detail = KEYS[DETAIL]
    local known = redis.call('HMGET', detail, 'layout', 'seen', 'last', 'lasts', 'w' .. own)
    local ours = known[1] == 'THIS_LAYOUT'
    local time = redis.call('TIME')
    local clock = string.format('%s%06d', time[1], time[2])
    local now = string.sub(clock, 1, -4)
    -- INVARIANT I5: no tombstone. And detail says what it is, or is not there. Texts
    -- of the same length compare like numbers.
    local plain = redis.call('EXISTS', detail, detail, KEYS[CANCELLED]) == (ours and 2 or 0)
      and (not ours or #(known[2] or '') == #now and known[2] <= now)
    local age = clock - granted
    if plain and ARGV[WAITER_TTL] == '0' and not (known[5] and ARGV[FIRST] == '1') then
      return { 0, left, holder, 0, ours and redis.call('ZCOUNT', KEYS[WAITERS], '(' .. now, '+inf') or 0, age, 0 }
    end
    -- All places are whole and live, and none is our own; or there is none, and
    -- nothing is left of any. INVARIANT I7: the number of a place is the clock, above
    -- the last one.
    local places = redis.call('ZCARD', KEYS[QUEUE])
    if not ours then
      plain = plain and redis.call('EXISTS', KEYS[QUEUE], KEYS[WAITERS], KEYS[HOLDERS]) == 0
    elseif known[5] or #(known[3] or '') ~= #clock or known[3] >= clock then
      plain = false
    else
      plain = plain and places > 0 and redis.call('ZCOUNT', KEYS[WAITERS], '(' .. now, '+inf') == places
    end
    if plain then
      -- As givePlace and keepPlaces in queue.lua.
      local ms = ARGV[WAITER_TTL]
      local ends = tonumber(now) + tonumber(ms)
      local record = ms .. ' ' .. ARGV[HEAD_ARGS + MODE] .. ' 0 ' .. ARGV[HEAD_ARGS + PERMITS] .. ' 0 0 ' .. now .. ' ' .. ARGV[INBOX] .. ' ' .. ARGV[HEAD_ARGS + HOLDER]
      local short = not ours or ends > tonumber(known[4] or 0)
      -- The first write is the one that a full server refuses.
      if short then
        redis.call('HSET', detail, 'w' .. own, record, 'seen', now, 'last', clock, 'lasts', string.format('%.0f', ends + SPARE), 'layout', 'THIS_LAYOUT')
      else
        redis.call('HSET', detail, 'w' .. own, record, 'seen', now, 'last', clock)
      end
      redis.call('ZADD', KEYS[QUEUE], clock, own)
      redis.call('ZADD', KEYS[WAITERS], string.format('%.0f', ends), own)
      if short then
        ms = string.format('%.0f', tonumber(ms) + SPARE + SLACK)
        redis.call('PEXPIRE', KEYS[QUEUE], ms)
        redis.call('PEXPIRE', KEYS[WAITERS], ms)
        redis.call('PEXPIRE', detail, ms)
      end
      if writes then
        local event = 'q' .. clock .. ' ' .. string.sub(own, 1, 16) .. ' ' .. ARGV[HEAD_ARGS + MODE] .. ' 0 ' .. ARGV[HEAD_ARGS + PERMITS] .. ' 0 ' .. ARGV[HEAD_ARGS + HOLDER]
        if jot(detail .. CROWD_SUFFIX, { event }) and listened() then
          publish(KEYS[LOCK], clock, { event })
        end
      end
      return { 0, left, holder, places + 1, places + 1, age, 0 }
    end
  end
end
