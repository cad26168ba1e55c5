-- extend_alone.lua: lengthens one exclusive lease by its key alone, which a
-- Redis Cluster serves even while it moves the slot. It is put behind value.lua.
--
-- KEYS   1 the lock
-- ARGV   1 lease ID   2 TTL in ms
-- Reply  1 lasts at least so long from now   0 the lease is not live
--        -7 several have the lock, and other keys are needed

local lock = read(KEYS[1])
if lock and lock.err then
  return redis.error_reply(lock.err)
end
-- INVARIANT I4: only the exact lease, and never a new one.
if not lock or lock.id ~= ARGV[1] then
  return lock and lock.group and -7 or 0
end
local err = lengthen(KEYS[1], lock, ARGV[2])
return err and redis.error_reply(err) or 1
