-- downgrade.lua: turns an exclusive lease into a shared one.
--
-- KEYS   1 to 7 as in queue.lua
-- ARGV   1, 2 as in queue.lua   3 lease ID
-- Reply  1 it is shared   0 the lease is not live   -1 it is a permit
--        MORE there is more to do first, or 2 it is shared, and there is more to
--        do: send it again

local s = open(1)
tidy(s)
if s.more then
  return MORE
end
local id = ARGV[3]
local h = lease(s, id)
if not h then
  done(s)
  return 0
end
if h ~= s.lock and s.lock.limit > 0 then
  return -1
end
if h == s.lock then
  clamp(s.key, h)
  local ends = millis() + h.left
  s.busy = true
  found(s, id, 0)
  writeGroup(s, num(ends))
  enter(s, { { member = id, ends = ends, ttl = h.ttl, token = h.token, permits = 0, holder = h.holder } })
end
-- It is done, whatever becomes of those who wait.
pcall(serve, s)
return s.more and 2 or 1
