-- plain_renew.lua: lengthens exclusive leases by the TTL that they were last
-- given. It stands alone; see plain_acquire.lua.
--
-- KEYS   for each lease: LOCK
-- ARGV   for each lease: its ID, TTL in ms
-- Reply  for each lease: 1 lasts this long from now, or 0: not plain, and nothing
--        has changed for it; -1 if several have the lock

local function renew(k, a)
  -- INVARIANT I4: only the exact lease.
  local value, mine = redis.call('GET', KEYS[k + LOCK]), 'THIS_LAYOUT ' .. ARGV[a + ID] .. ' ' .. ARGV[a + TTL] .. ' '
  if not value or string.sub(value, 1, #mine) ~= mine then
    return value and string.find(value, 'THIS_LAYOUT *', 1, true) == 1 and -1 or 0
  end
  -- INVARIANT I6: the TTL is the one that the lease has, so this never shortens it:
  -- a later end, or none, is there only if the clock went back or somebody changed
  -- it by hand, and the holder trusts no such end. See clamp in value.lua.
  return redis.call('PEXPIRE', KEYS[k + LOCK], ARGV[a + TTL])
end

local replies = {}
for i = 0, #KEYS / EACH_KEYS - 1 do
  -- One that fails must not spoil the others.
  local ok, reply = pcall(renew, EACH_KEYS * i, EACH_ARGS * i)
  replies[i + 1] = ok and reply or 0
end
return replies
