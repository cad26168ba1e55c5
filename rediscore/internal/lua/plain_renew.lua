-- plain_renew.lua: lengthens exclusive leases by the TTL that they were last
-- given.
--
-- KEYS   for each lease: LOCK
--        and, from an engine that writes history, one more: the history, whose
--        expiry follows that of the lease; see feed.lua
-- ARGV   TOKEN_MEMORY of the last token in ms; for each lease: its ID, TTL in ms, its
--        TOKEN or 0 for any
-- Reply  for each lease: 1 lasts this long from now, or 0: not plain, and nothing
--        has changed for it; -1 if several have the lock

local time, half = redis.call('TIME'), ARGV[TOKEN_MEMORY] / 2
local now = time[1] * 1000 + time[2] / 1000
-- A lease with a greater token than young ends in the first half, if its TTL is usual.
local usual, young

local function plain(k, a, width)
  -- INVARIANT I4: only the exact lease.
  local value, mine = redis.call('GET', KEYS[k + LOCK]), 'THIS_LAYOUT ' .. ARGV[a + ID] .. ' ' .. ARGV[a + TTL] .. ' '
  local token = ARGV[a + TOKEN]
  if token ~= '0' then
    mine = mine .. token .. ' '
  end
  if not value or string.find(value, mine, 1, true) ~= 1 then
    return value and string.find(value, 'THIS_LAYOUT *', 1, true) == 1 and -1 or 0
  end
  -- Now and then the last token is to be remembered for longer; see keepToken in
  -- token.lua. Digits of the same length compare like numbers.
  if ARGV[a + TTL] ~= usual then
    usual = ARGV[a + TTL]
    young = string.format('%.0f', (now + usual - half) * 1000)
  end
  if token == '0' then
    token = string.sub(value, #mine + 1, #mine + #young)
  end
  if token <= young and (now - token / 1000) % half + usual >= half then
    return 0
  end
  -- INVARIANT I6: the TTL is the one that the lease has, so this never shortens it:
  -- a later end, or none, is there only if the clock went back or somebody changed
  -- it by hand, and the holder trusts no such end. See clamp in value.lua.
  if width > EACH_KEYS then
    redis.pcall('PEXPIRE', KEYS[k + width], string.format('%.0f', HISTORY_MEMORY + ARGV[a + TTL]))
  end
  return redis.call('PEXPIRE', KEYS[k + LOCK], ARGV[a + TTL])
end
