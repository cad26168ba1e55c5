-- member_withdraw.lua: ends a lease of a quorum, and makes sure that none of its
-- tokens is accepted or repaired afterwards.
--
-- KEYS   LOCK, FENCE, CANCELLED, the lease ID's tombstone
-- ARGV   ID of the lease; TOKEN the greatest that was proposed, 0 if unknown
--        LIFT how far ahead of the clock in us the last token may be lifted to it
--        KEEP_FOR ms to keep the name closed, or 0; CANCEL_MEMORY ms to remember
--        the cancel, or 0 for no cancel; TOKEN_MEMORY of the last token in ms
-- Reply  {token, ''}  of the lease that was ended, or 0 if there was none
--        with the text of the server's error instead of '' if it refused to
--        remember the cancel: a full server still lets a lease be ended
--        {-3} the last token is not a number; nothing was changed

local id, token = ARGV[ID], tonumber(ARGV[TOKEN])

local lock, last, refusal = readName(KEYS[LOCK], KEYS[FENCE])
if refusal then
  return refusal
end

-- What was withdrawn is remembered as the odd number above the token.
local function odd(n)
  return n + 1 - n % 2
end

local ended, lift = 0, 0
if token > 0 and token <= micros() + tonumber(ARGV[LIFT]) then
  lift = odd(token)
end
-- INVARIANT I4: only the exact lease, and no greater token.
if lock and lock.id == id and (token == 0 or tonumber(lock.token) <= token) then
  ended = tonumber(lock.token)
  lift = math.max(lift, odd(ended))
  -- This comes first: after one write a full server refuses nothing more.
  if ARGV[KEEP_FOR] == '0' then
    redis.call('DEL', KEYS[LOCK])
  else
    redis.call('PEXPIRE', KEYS[LOCK], ARGV[KEEP_FOR])
    write(KEYS[LOCK], '-' .. id, lock.token, lock.granted, ARGV[KEEP_FOR], lock.holder)
  end
end
raise(KEYS[FENCE], last, lift, ARGV[TOKEN_MEMORY])

local remember = ''
if ARGV[CANCEL_MEMORY] ~= '0' then
  -- INVARIANT I5: even if there was a lease to end, because a copy of its
  -- proposal with a greater token may be under way.
  remember = redis.pcall('SET', KEYS[CANCELLED], '', 'PX', ARGV[CANCEL_MEMORY]).err or ''
end
return { ended, remember }
