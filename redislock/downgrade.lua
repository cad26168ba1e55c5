-- downgrade.lua: turns an exclusive lease into a shared one.
--
-- KEYS   1 to 7 as in queue.lua
-- ARGV   1, 2 as in queue.lua   3 lease ID
-- Reply  1 it is shared   0 the lease is not live   -1 it is a permit

local s = open(1)
tidy(s)
local id = ARGV[3]
local h = lease(s, id)
if not h then
  done(s)
  return 0
end
if h ~= s.lock then
  return s.lock.limit == 0 and 1 or -1
end
clamp(s.key, h)
local ends = millis() + h.left
s.busy = true
found(s, id, 0, ends)
enter(s, id, { ends = ends, ttl = h.ttl, token = h.token, permits = 0, holder = h.holder })
-- It is done, whatever becomes of those who wait.
pcall(serve, s)
return 1
