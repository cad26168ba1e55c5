-- handover.lua: the head of release.lua, for an exclusive lease whose lock goes to the first place
-- of the queue, exclusively too. Like join.lua it is at the beginning of its script, and a request
-- that is not plain changes nothing here.
--
-- KEYS, ARGV and reply as in release.lua.

local value, last = unpack(redis.call('MGET', KEYS[LOCK], KEYS[FENCE]))
value = value or nil -- nil if the key is missing or of another type
do
  local foreign = ARGV[FOREIGN] == '1'
  -- INVARIANT I4: the whole lease ID.
  local own = ARGV[KEEP_FOR] == '0' and ARGV[CANCEL_MEMORY] == '0' and value and last
    and string.sub(value, 1, 35) == 'THIS_LAYOUT ' .. ARGV[ID] .. ' '
  local first = own and redis.call('ZRANGE', KEYS[QUEUE], 0, 1)
  local id = first and first[1]
  if id then
    local layout, once, seen, ours, alien, record =
      unpack(redis.call('HMGET', KEYS[DETAIL], 'layout', 'once', 'seen', 'ours', 'alien', 'w' .. id))
    local ends, ttl, since, inbox, holder = string.match(record or '', '^(%d+) (%d+) 0 0 0 0 0 (%d+) (%x*) (.*)$')
    local time = redis.call('TIME')
    local token = string.format('%s%06d', time[1], time[2])
    local now = tonumber(string.sub(token, 1, -4))
    if layout == 'THIS_LAYOUT' and not once and tonumber(seen or 0) <= now and ends and tonumber(ends) > now
      -- It is not time to leave the lock free; see yield.lua.
      and (not foreign or not ours or tonumber(ours) <= now and now - tonumber(ours) < (alien and SHARE or TURNS))
      -- The last token outlasts the lease, as in keepToken of token.lua.
      and ends - now < ARGV[TOKEN_MEMORY] / 2
      -- INVARIANT I2: above all tokens that the last token has reserved. drawToken handles a last
      -- token that is ahead of the clock, or not a number.
      and string.find(last, '^%d+$') and last + TOKEN_RANGE <= tonumber(token) then
      -- The first write needs no memory, and a full server refuses only the first write.
      redis.call('ZREM', KEYS[QUEUE], id)
      redis.call('HDEL', KEYS[DETAIL], 'w' .. id)
      redis.call('SET', KEYS[FENCE], token, 'PX', ARGV[TOKEN_MEMORY])
      redis.call('SET', KEYS[LOCK], 'THIS_LAYOUT ' .. id .. ' ' .. ttl .. ' ' .. token .. ' ' .. token .. ' ' .. holder, 'PXAT', ends)
      if not first[2] then
        redis.call('UNLINK', KEYS[HOLDERS], KEYS[DETAIL])
      elseif foreign and not ours then
        redis.call('HSET', KEYS[DETAIL], 'ours', string.format('%.0f', now))
      end
      -- The client that sent this request reads its own message in the reply.
      local message = id .. ' ' .. token
      if inbox ~= ARGV[INBOX] then
        redis.pcall('PUBLISH', ARGV[INBOXES] .. inbox, message)
        message = ''
      end
      if writes then
        local event, next = 'R' .. token .. ' ' .. value, 'h' .. token .. ' ' .. token .. ' 0 0 0 ' .. since .. '000 ' .. holder
        if ARGV[LOST] == '1' then
          event = 'l' .. token .. ' ' .. string.gsub(string.sub(value, 36), '^%d+ (%d+) (%d+) ', '%1 0 0 0 %2 ')
        end
        local history = KEYS[DETAIL] .. HISTORY_SUFFIX
        local n = redis.pcall('RPUSH', history, event, next)
        if type(n) == 'number' then
          bound(history, n, ends - now)
          if listened() then
            publish(KEYS[LOCK], token, { event, next })
          end
        end
      end
      return { 1, '', 0, message }
    end
  end
end
