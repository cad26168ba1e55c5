-- join.lua: the head of acquire.lua, for a lock that another client holds exclusively: the request
-- joins the queue, or is refused. It is at the beginning of its script, because each call makes
-- all functions that precede the code it runs. A request that is not plain changes nothing here,
-- and continues with the full script.
--
-- KEYS, ARGV and reply as in acquire.lua.

local value, cancelled = unpack(redis.call('MGET', KEYS[LOCK], KEYS[CANCELLED]))
value = value or nil -- nil if the key is missing or of another type
do
  local own, id, ttl, granted, holder = ARGV[HEAD_ARGS + ID]
  if value and not cancelled and ARGV[ONCE] == '0' and ARGV[HEAD_ARGS + LIMIT] == '0' and ARGV[HEAD_ARGS + MIN_TOKEN] == '0' then
    id, ttl, granted, holder = string.match(value, '^THIS_LAYOUT ([0-9a-f]+) (%d+) %d+ (%d+) (.*)$')
  end
  local left = id and #id == 32 and id ~= own and redis.call('PTTL', KEYS[LOCK])
  -- If the clock went back, the TTL shows it, or 'seen' below.
  if left and left >= 0 and left <= tonumber(ttl) then
    local detail = KEYS[DETAIL]
    local layout, seen, last, lasts, due, mending, place =
      unpack(redis.call('HMGET', detail, 'layout', 'seen', 'last', 'lasts', 'due', 'mend', 'w' .. own))
    local time = redis.call('TIME')
    local clock = string.format('%s%06d', time[1], time[2])
    local now, age = string.sub(clock, 1, -4), clock - granted
    local ours, places, plain = layout == 'THIS_LAYOUT', 0
    if ours then
      -- No place has expired. Texts of equal length compare like numbers.
      plain = due and seen and last and lasts and not mending and #due == #now and now < due and #seen == #now and seen <= now
      places = plain and redis.call('ZCARD', KEYS[QUEUE])
    else
      plain = redis.call('EXISTS', KEYS[QUEUE], KEYS[HOLDERS], detail) == 0
    end
    if plain and ARGV[WAITER_TTL] == '0' and not (place and ARGV[FIRST] == '1') then
      return { 0, left, holder, 0, places, age, 0 }
    end
    -- The lease ID has no place yet. INVARIANT I7: the number of the new place is the clock,
    -- above the last number.
    if plain and (not ours or not place and places > 0 and #last == #clock and last < clock) then
      -- The same as givePlace and writePlaces in queue.lua.
      local ms = ARGV[WAITER_TTL]
      local ends = string.format('%.0f', now + ms)
      local record = ends .. ' ' .. ms .. ' ' .. ARGV[HEAD_ARGS + MODE] .. ' 0 ' .. ARGV[HEAD_ARGS + PERMITS] .. ' 0 0 ' .. now .. ' ' .. ARGV[INBOX] .. ' ' .. ARGV[HEAD_ARGS + HOLDER]
      local short = not ours or tonumber(ends) > tonumber(lasts)
      -- A full server refuses only the first write.
      if short or ends < due then
        lasts = short and string.format('%.0f', ends + SPARE) or lasts
        due = ours and due < ends and due or ends
        redis.call('HSET', detail, 'w' .. own, record, 'seen', now, 'last', clock, 'lasts', lasts, 'due', due, 'layout', 'THIS_LAYOUT')
      else
        redis.call('HSET', detail, 'w' .. own, record, 'seen', now, 'last', clock)
      end
      places = places + redis.call('ZADD', KEYS[QUEUE], clock, own)
      if short then
        ms = string.format('%.0f', tonumber(ms) + SPARE + SLACK)
        redis.call('PEXPIRE', KEYS[QUEUE], ms)
        redis.call('PEXPIRE', detail, ms)
      end
      if writes then
        local event = 'q' .. clock .. ' ' .. string.sub(own, 1, 16) .. ' ' .. ARGV[HEAD_ARGS + MODE] .. ' 0 ' .. ARGV[HEAD_ARGS + PERMITS] .. ' 0 ' .. ARGV[HEAD_ARGS + HOLDER]
        if jot(detail .. CROWD_SUFFIX, { event }) and listened() then
          publish(KEYS[LOCK], clock, { event })
        end
      end
      return { 0, left, holder, places, places, age, 0 }
    end
  end
end
