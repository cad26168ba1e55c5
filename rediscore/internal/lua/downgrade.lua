-- downgrade.lua: turns an exclusive lease into a shared one.
--
-- KEYS   as in queue.lua
-- ARGV   as in queue.lua, and ID of the lease
-- Reply  1 it is shared   0 the lease is not live   -1 it is a permit
--        MORE there is more to do first, or 2 it is shared, and there is more to
--        do: send it again

local s = open(0)
if s.unknown then
  return redis.error_reply(s.unknown)
end
purge(s)
if s.more then
  return MORE
end
local id = ARGV[ID]
local h = lease(s, id)
if not h then
  sweep(s)
  return 0
end
if h ~= s.lock and s.lock.limit > 0 then
  return -1
end
if h == s.lock then
  clamp(s.key, h)
  local ends = millis() + h.left
  s.busy = true
  beginGroup(s, id, 0)
  writeGroup(s, num(ends))
  putShared(s, { { member = id, ends = ends, ttl = h.ttl, token = h.token, permits = 0, granted = h.granted, holder = h.holder } })
  note(s, { 'd' .. h.token })
end
-- It is done, whatever becomes of those who wait.
pcall(serve, s)
return s.more and 2 or 1
