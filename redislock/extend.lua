-- extend.lua: lengthens many leases in one call.
--
-- KEYS   the locks
-- ARGV   for each lock: lease ID, TTL in ms
-- Reply  for each lock: 1 lasts at least so long from now, 0 the lease is not
--        live, or the text of the server's error

local replies = {}
for i = 1, #KEYS do
  local lock = read(KEYS[i])
  -- INVARIANT I4: only the exact lease, and never a new one.
  if lock and lock.id == ARGV[2 * i - 1] then
    replies[i] = lengthen(KEYS[i], lock, ARGV[2 * i]) or 1
  else
    replies[i] = 0
  end
end
return replies
