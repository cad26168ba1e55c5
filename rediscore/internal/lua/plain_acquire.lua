-- plain_acquire.lua: takes exclusive locks that are free and have no queue. plain_each.lua follows.
--
-- KEYS   for each request: LOCK, FENCE, DETAIL; CANCELLED is the tombstone of the lease ID
-- ARGV   TOKEN_MEMORY of the last token in ms; FEED as in feed.lua; for each request: ID of the
--        lease; TTL in ms; HOLDER as JSON
-- Reply  for each request: the token, or 0 if the request is not plain

local time = redis.call('TIME')
local token = string.format('%s%06d', time[1], time[2])
local number, granted = tonumber(token), ' ' .. token .. ' ' .. token .. ' '
local hour = writes and string.sub(token, 1, HOUR) .. '0000000000'

-- putBack restores the last token of a name that is free, nil for none; see token.lua.
local function putBack(fence, last)
  if not last then
    redis.call('DEL', fence)
  elseif #last <= #token and string.find(last, '^%d+$') then
    redis.call('SET', fence, last, 'PXAT', string.format('%.0f', last / 1000 + ARGV[TOKEN_MEMORY]))
  else
    redis.call('SET', fence, last, 'PX', ARGV[TOKEN_MEMORY]) -- not a token
  end
  return 0
end

local function plain(k, a)
  -- INVARIANT I1: no lease. INVARIANT I5: no cancel. INVARIANT I7: no place.
  if redis.call('EXISTS', KEYS[k + LOCK], KEYS[k + DETAIL], KEYS[k + CANCELLED]) ~= 0 then
    return 0
  end
  -- This is the first write, the only one that a full server refuses. INVARIANT I11: the end
  -- counts from the token, which is the clock. If the second write fails, a token is skipped.
  local last = redis.call('SET', KEYS[k + FENCE], token, 'PX', ARGV[TOKEN_MEMORY], 'GET')
  -- INVARIANT I2: above all tokens that the last token has reserved. drawToken handles a last
  -- token that is ahead of the clock, or not a number.
  if last and not (string.find(last, '^%d+$') and last + TOKEN_RANGE <= number) then
    return putBack(KEYS[k + FENCE], last)
  end
  local value = 'THIS_LAYOUT ' .. ARGV[a + ID] .. ' ' .. ARGV[a + TTL] .. granted .. ARGV[a + HOLDER]
  if writes and not recorded(k, value, token, 1, not last or last < hour, tonumber(ARGV[a + TTL])) then
    return putBack(KEYS[k + FENCE], last)
  end
  redis.call('SET', KEYS[k + LOCK], value, 'PX', ARGV[a + TTL])
  return number
end
