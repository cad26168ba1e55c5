-- member_propose.lua: proposes a lease with a token to a member of a quorum. It follows member.lua.
--
-- KEYS   LOCK, FENCE, DETAIL, MARKER; CANCELLED is the tombstone of the lease ID
-- ARGV   ID of the lease; PROPOSER; TTL in ms; TOKEN; REPLACES the greatest token of an earlier
--        lease of the same proposer that this one may replace; LEAD and LAG how far the token may
--        be ahead of the clock and behind it, in us; QUARANTINE its length in ms; TOKEN_MEMORY of
--        the last token in ms; HOLDER as JSON
-- Reply  {vote, last token, clock in us, token, ms, holder, lease ID, us, released}
--        vote      0 the token is refused   1 accepted   2 the name is held   3 the lease ID has a
--                  lease with another token or proposer, or a confirmed one   4 cancelled
--                  5 in quarantine
--        token     of the lease ID's lease, or 0
--        ms        how long the rival's lease still lasts, -1 for no expiry; or the quarantine
--        holder, lease ID  of the rival's lease; '' if unknown
--        us        how long ago the rival's lease was granted, 0 if unknown
--        released  1 if the rival's lease has ended and the name is kept closed, else 0
--        {-3}         the last token is not a number
--        {-4, limit}  the name is in use with this limit
-- Only vote 1 writes a lease or a token.

local id, ttl, token = ARGV[ID], ARGV[TTL], tonumber(ARGV[TOKEN])

local lock, last, refusal = readName(KEYS[LOCK], KEYS[FENCE])
if refusal then
  return refusal
end

local function vote(v, of, ms, holder, rival, since, released)
  return { v, last, micros(), of or 0, ms or 0, holder or '', rival or '', since or 0, released or 0 }
end

-- INVARIANT I5: a request that arrives after its own cancel grants nothing.
if redis.call('EXISTS', KEYS[CANCELLED]) == 1 then
  return vote(4)
end

local own = lock and lock.id == id and lock
local proposer = '/' .. ARGV[PROPOSER]
if own then
  local has, same = tonumber(own.token), own.proposer == proposer
  if same and has == token then
    local err = lengthenExclusive(KEYS[LOCK], own, ttl) -- INVARIANT I6
    keepToken(KEYS[FENCE], token, own.left, ARGV[TOKEN_MEMORY])
    if err then
      return redis.error_reply(err)
    end
    return vote(1, has)
  end
  clamp(KEYS[LOCK], own)
  if not same or has > tonumber(ARGV[REPLACES]) then
    return vote(3, has)
  end
elseif lock then
  if (lock.limit or 0) > 0 then
    return { -4, lock.limit }
  end
  clamp(KEYS[LOCK], lock)
  local rival, closed = string.gsub(lock.id or lock.group or '', '^%-', '')
  return vote(2, 0, lock.left, lock.holder, rival, age(lock), closed)
elseif redis.call('EXISTS', KEYS[DETAIL]) == 1 then
  -- Waiters of an engine without a quorum come first. The key expires soon after the last of
  -- their places.
  local err = unknownDetail(KEYS[DETAIL], redis.call('HGET', KEYS[DETAIL], 'layout'))
  if err then
    return redis.error_reply(err)
  end
  return vote(2, 0, redis.call('PTTL', KEYS[DETAIL]))
end

local remaining = quarantined(KEYS[MARKER], ARGV[QUARANTINE])
if remaining > 0 then
  return vote(5, 0, remaining)
end

-- INVARIANT I2: above every token that was accepted or withdrawn.
if token <= last or token < micros() - tonumber(ARGV[LAG]) or token > micros() + tonumber(ARGV[LEAD]) then
  return vote(0)
end
local err = putLease(KEYS[LOCK], KEYS[FENCE], last, own, id .. proposer, token, 0, ttl, ARGV[HOLDER], ARGV[TOKEN_MEMORY])
if err then
  return redis.error_reply(err)
end
last = token
return vote(1, token)
