-- extend_alone.lua: lengthens one exclusive lease by its key alone, which a Redis Cluster serves
-- even while it moves the slot. It follows value.lua.
--
-- KEYS   LOCK
-- ARGV   ID of the lease; TTL in ms; TOKEN, or 0 for any
-- Reply  1   the lease lasts at least this long from now
--        0   the lease is not live
--        -7  the name has shared leases or permits, which need the other keys

local lock = read(KEYS[LOCK])
if lock and lock.err then
  return redis.error_reply(lock.err)
end
-- INVARIANT I4: only the exact lease. An extend never makes a lease.
if not lock or lock.id ~= ARGV[ID] then
  return lock and lock.group and -7 or 0
end
if ARGV[TOKEN] ~= '0' and ARGV[TOKEN] ~= lock.token then
  return 0
end
local err = lengthenExclusive(KEYS[LOCK], lock, ARGV[TTL])
return err and redis.error_reply(err) or 1
