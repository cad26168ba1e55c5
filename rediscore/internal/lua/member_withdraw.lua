-- member_withdraw.lua: ends a lease of a quorum, so that none of its tokens is accepted or repaired
-- afterwards. It follows member.lua.
--
-- KEYS   LOCK, FENCE; CANCELLED is the tombstone of the lease ID
-- ARGV   ID of the lease; PROPOSER whose lease ends; RELEASED 1 to end the lease with any
--        proposer and token, confirmed or not, else 0; TOKEN the greatest that was proposed,
--        0 if unknown; LIFT how far ahead of the clock, in us, the last token may be lifted;
--        KEEP_FOR ms to keep the name closed, or 0; CANCEL_MEMORY ms to remember the cancel, 0 for
--        no cancel; TOKEN_MEMORY of the last token in ms
-- Reply  {token, ''}  the token of the ended lease, 0 if there was none; with the text of the
--                     server's error instead of '' if the cancel was not remembered, because a
--                     full server still lets a lease be ended
--        {-3}         the last token is not a number; nothing has changed

local id, token = ARGV[ID], tonumber(ARGV[TOKEN])

local lock, last, refusal = readName(KEYS[LOCK], KEYS[FENCE])
if refusal then
  return refusal
end

-- odd returns the last token that remembers a withdrawn token n: the odd number above it.
local function odd(n)
  return n + 1 - n % 2
end

local own = lock and lock.id == id and lock
local has = own and tonumber(own.token)
local ended, lift, left = 0, 0, lock and lock.left or 0
-- INVARIANT I4: only the exact lease. INVARIANT I5: an engine withdraws only its own proposal,
-- and no greater token.
local ends = own and (ARGV[RELEASED] == '1' or own.proposer == '/' .. ARGV[PROPOSER] and has <= token)
-- A lease that stays may be repaired later: its token was not withdrawn.
if token > 0 and (ends or has ~= token) and token <= micros() + tonumber(ARGV[LIFT]) then
  lift = odd(token)
end
if ends then
  ended = has
  lift = math.max(lift, odd(ended))
  -- This is the first write, which needs no memory: a full server refuses only the first.
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
  -- INVARIANT I5: even if a lease has ended, because a copy of its proposal with a greater
  -- token may still arrive.
  remember = redis.pcall('SET', KEYS[CANCELLED], '', 'PX', ARGV[CANCEL_MEMORY]).err or ''
end
return { ended, remember }
