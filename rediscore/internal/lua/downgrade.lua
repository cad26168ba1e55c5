-- downgrade.lua: turns an exclusive lease into a shared one. It follows serve.lua.
--
-- KEYS   as in queue.lua
-- ARGV   as in queue.lua; ID of the lease
-- Reply  1     the lease is shared
--        2     the lease is shared, and other work remains; the client sends the request again
--        0     the lease is not live
--        -1    the lease is a permit
--        MORE  as in acquire.lua

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
-- The lease is shared, even if the hand-over fails.
pcall(serve, s)
return s.more and 2 or 1
