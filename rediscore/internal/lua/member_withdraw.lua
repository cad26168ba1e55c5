-- member_withdraw.lua: ends a lease of a quorum, and makes sure that none of its
-- tokens is accepted or repaired afterwards.
--
-- KEYS   1 the lock   2 its last token   3 the lease ID's tombstone
-- ARGV   1 lease ID   2 the greatest token that was proposed, 0 if unknown
--        3 how far ahead of the clock in us the last token may be lifted to it
--        4 ms to keep the name closed, or 0   5 ms to remember the cancel, or 0
--        for no cancel   6 memory of the last token in ms
-- Reply  {token, ''}  of the lease that was ended, or 0 if there was none
--        with the text of the server's error instead of '' if it refused to
--        remember the cancel: a full server still lets a lease be ended
--        {-3} the last token is no number; nothing was changed

local id, token = ARGV[1], tonumber(ARGV[2])

local lock, last, refusal = known(KEYS[1], KEYS[2])
if refusal then
  return refusal
end

-- What was withdrawn is remembered as the odd number above the token.
local function odd(n)
  return n + 1 - n % 2
end

local ended, lift = 0, 0
if token > 0 and token <= micros() + tonumber(ARGV[3]) then
  lift = odd(token)
end
-- INVARIANT I4: only the exact lease, and no greater token.
if lock and lock.id == id and (token == 0 or tonumber(lock.token) <= token) then
  ended = tonumber(lock.token)
  lift = math.max(lift, odd(ended))
  -- This comes first: after one write a full server refuses nothing more.
  if ARGV[4] == '0' then
    redis.call('DEL', KEYS[1])
  else
    redis.call('PEXPIRE', KEYS[1], ARGV[4])
    write(KEYS[1], '-' .. id, lock.token, ARGV[4], lock.holder)
  end
end
raise(KEYS[2], last, lift, ARGV[6])

local remember = ''
if ARGV[5] ~= '0' then
  -- INVARIANT I5: also when there was a lease to end, because a copy of its
  -- proposal with a greater token may be under way.
  remember = redis.pcall('SET', KEYS[3], '', 'PX', ARGV[5]).err or ''
end
return { ended, remember }
