-- release_alone.lua: ends one exclusive lease by its key alone, which a Redis
-- Cluster serves even while it moves the slot. It is put behind value.lua.
--
-- KEYS   1 the lock
-- ARGV   1 lease ID   2 ms to keep the name closed, or 0
-- Reply  1 ended, and nobody was handed the lock   0 another has it, or nobody

local lock = read(KEYS[1])
if lock and lock.err then
  return redis.error_reply(lock.err)
end
-- INVARIANT I4: only the exact lease.
if not lock or lock.id ~= ARGV[1] then
  return 0
end
if ARGV[2] == '0' then
  redis.call('DEL', KEYS[1])
  return 1
end
local err = write(KEYS[1], '-' .. lock.id, lock.token, ARGV[2], lock.holder).err
return err and redis.error_reply(err) or 1
