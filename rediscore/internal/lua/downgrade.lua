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
local h = lease(s, ARGV[ID])
if not h then
  sweep(s)
  return 0
end
if h ~= s.lock and s.lock.limit > 0 then
  return -1
end
if h == s.lock then
  clamp(s.key, h)
  h.ends = millis() + h.left
  s.busy = true
  beginGroup(s, h.id, 0)
  writeGroup(s, num(h.ends))
  putShared(s, { h })
  note(s, { 'd' .. h.token })
end
-- The lease is shared, even if the hand-over fails.
pcall(serve, s)
return s.more and 2 or 1
