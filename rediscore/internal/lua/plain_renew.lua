-- plain_renew.lua: lengthens exclusive leases by the TTL that they last had. plain_each.lua follows.
--
-- KEYS   for each lease: LOCK; from an engine with history one more: the history, whose expiry
--        follows the lease's; see feed.lua
-- ARGV   TOKEN_MEMORY of the last token in ms; for each lease: its ID; TTL in ms; TOKEN, or 0 for
--        any
-- Reply  for each lease: 1 it lasts this long from now; 0 the request is not plain, and changed
--        nothing; -1 the name has shared leases or permits

local time, half = redis.call('TIME'), ARGV[TOKEN_MEMORY] / 2
local now = time[1] * 1000 + time[2] / 1000
-- A lease with a token above young ends in the first half of TOKEN_MEMORY, if its TTL is usual.
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
  -- At times the last token must be remembered for longer; see keepToken in token.lua. Digits of
  -- equal length compare like numbers.
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
  -- INVARIANT I6: the lease has this TTL already, so this never shortens it. A later end, or
  -- none, exists only if the clock went back or a user changed it, and the holder trusts no such
  -- end. See clamp in value.lua.
  if width > EACH_KEYS then
    redis.pcall('PEXPIRE', KEYS[k + width], string.format('%.0f', HISTORY_MEMORY + ARGV[a + TTL]))
  end
  return redis.call('PEXPIRE', KEYS[k + LOCK], ARGV[a + TTL])
end
