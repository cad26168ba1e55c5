-- token.lua: the last token of a name, and how long it is remembered. It follows clock.lua.
--
-- INVARIANT I11: the key of the last token lasts for TOKEN_MEMORY after the token, read as
-- microseconds, and as long as the name is held or kept closed, because a list finds names by
-- this key. So that a renewal need not look at the key, the time after the token of the lease is
-- divided into halves of TOKEN_MEMORY, and the key lasts at least until the end of the half in
-- which the lease ends. So a request lengthens the key only if the lease comes to end in a later
-- half than the present one.

-- lastToken returns the last token of a name as a number, 0 for none; or nil, and the reply if it is
-- not a usable one.
local function lastToken(fence)
  local last = redis.pcall('GET', fence) or '0'
  if type(last) == 'table' then
    return nil, last
  end
  if not string.match(last, '^%d+$') then
    return nil, { -3 }
  end
  return tonumber(last)
end

-- putToken writes the last token of a name whose leases last for ms.
local function putToken(fence, token, ms, memory)
  local ends = math.max(token / 1000 + memory, millis() + ms + memory / 2 + SLACK)
  redis.call('SET', fence, num(tonumber(token)), 'PXAT', num(math.floor(ends)))
end

-- keepToken makes the last token last for a lease with this token that lasts, or is kept closed,
-- for ms.
local function keepToken(fence, token, ms, memory)
  local half = memory / 2
  -- A token may be ahead of the clock; then its first half has not begun.
  if math.max(millis() - token / 1000, 0) % half + ms < half then
    return
  end
  local left = num(math.max(redis.call('PTTL', fence), ms + half + SLACK))
  -- A full server accepts this, but not SET.
  if redis.call('PEXPIRE', fence, left) == 0 then
    redis.pcall('SET', fence, num(tonumber(token)), 'PX', left)
  end
end
