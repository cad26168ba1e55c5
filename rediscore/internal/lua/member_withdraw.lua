-- member_withdraw.lua: ends a lease of a quorum, and makes sure that none of its
-- tokens is accepted or repaired afterwards.
--
-- KEYS   LOCK, FENCE, CANCELLED, the lease ID's tombstone
-- ARGV   ID of the lease; PROPOSER whose lease ends, empty of one that is confirmed;
--        RELEASED 1 if it ends whosever it is, and whatever its token; TOKEN the greatest that was proposed, 0 if unknown
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

local own = lock and lock.id == id and lock
local has = own and tonumber(own.token)
local ended, lift, left = 0, 0, lock and lock.left or 0
-- INVARIANT I4: only the exact lease. INVARIANT I5: what an engine takes back is what it
-- has proposed itself, and no greater token.
local proposer = ARGV[PROPOSER] == '' and '' or '/' .. ARGV[PROPOSER]
local ends = own and (ARGV[RELEASED] == '1' or own.proposer == proposer and has <= token)
-- A lease that stays can be repaired: its token was not withdrawn.
if token > 0 and (ends or has ~= token) and token <= micros() + tonumber(ARGV[LIFT]) then
  lift = odd(token)
end
if ends then
  ended = has
  lift = math.max(lift, odd(ended))
  -- This comes first: after one write a full server refuses nothing more.
  if ARGV[KEEP_FOR] == '0' then
    redis.call('DEL', KEYS[LOCK])
    left = 0
  else
    left = tonumber(ARGV[KEEP_FOR])
    redis.call('PEXPIRE', KEYS[LOCK], ARGV[KEEP_FOR])
    write(KEYS[LOCK], '-' .. id, lock.token, lock.granted, ARGV[KEEP_FOR], lock.holder)
  end
end
raise(KEYS[FENCE], last, lift, lock and lock.token, left, ARGV[TOKEN_MEMORY])

local remember = ''
if ARGV[CANCEL_MEMORY] ~= '0' then
  -- INVARIANT I5: even if there was a lease to end, because a copy of its
  -- proposal with a greater token may be under way.
  remember = redis.pcall('SET', KEYS[CANCELLED], '', 'PX', ARGV[CANCEL_MEMORY]).err or ''
end
return { ended, remember }
