-- acquire.lua: one attempt to take an exclusive lock.
--
-- KEYS   1 the lock   2 its last token   3 the lease ID's tombstone
-- ARGV   1 lease ID   2 TTL in ms   3 MinToken   4 holder as JSON
--        5 memory of the last token in ms   6 greatest lead of MinToken in us
-- Reply  {1, token}                granted, now or by an earlier copy
--        {0, ms left, holder}      held; -1 without an end, '' if foreign
--        {-1}                      cancelled before it arrived
--        {-2}                      MinToken is too far ahead of the clock
--        {-3}                      the last token is not a usable number
-- All replies but the first leave the store unchanged, except for the clamp.

-- INVARIANT I5: a request overtaken by its own cancel grants nothing.
if redis.call('EXISTS', KEYS[3]) == 1 then
  return { -1 }
end

local lock = read(KEYS[1])
if lock then
  local err = lock.err
  if lock.id == ARGV[1] then
    -- INVARIANT I6: a repeat gets the token of the first time.
    err = lengthen(KEYS[1], lock, ARGV[2])
    if not err then
      return { 1, tonumber(lock.token) }
    end
  end
  if err then
    return redis.error_reply(err)
  end
  clamp(KEYS[1], lock)
  return { 0, lock.left, lock.holder or '' }
end

-- TIME moves on during a script on some servers: read it once.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local min = tonumber(ARGV[3])
if min > now + tonumber(ARGV[6]) then
  return { -2 }
end

local last = redis.pcall('GET', KEYS[2]) or '0'
if type(last) == 'table' then
  return redis.error_reply(last.err)
end
if not string.match(last, '^%d+$') then
  return { -3 }
end

-- INVARIANT I2: above every earlier token, whatever the clock does. Integers
-- are exact below 2^53, but only '%.0f' writes all their digits.
local token = math.max(tonumber(last) + 1, now, min + 1)
if token >= 9007199254740991 then
  return { -3 }
end
local text = string.format('%.0f', token)
-- INVARIANT I11: counted from the token, so that the memory does not shrink
-- while the token leads the clock.
local forget = string.format('%.0f', math.floor(token / 1000) + tonumber(ARGV[5]))
redis.call('SET', KEYS[2], text, 'PXAT', forget)
local reply = write(KEYS[1], ARGV[1], text, ARGV[2], ARGV[4])
if reply.err then
  return redis.error_reply(reply.err)
end
return { 1, token }
