-- release_alone.lua: ends one exclusive lease by its key alone, which a Redis Cluster serves even
-- while it moves the slot. It follows clock.lua.
--
-- KEYS   LOCK
-- ARGV   ID of the lease; KEEP_FOR ms to keep the name closed, or 0; LOST 1 if the holder counts
--        the lease as lost, else 0; REMEMBER the key of the history, or empty. It is not declared:
--        while it is on the other node nothing is recorded, because a second list would stop the
--        move, and the lease counts as expired
-- Reply  1  the lease was ended, and the lock was not handed over
--        0  the lease is not live

local lock = read(KEYS[LOCK])
if lock and lock.err then
  return redis.error_reply(lock.err)
end
-- INVARIANT I4: only the exact lease.
if not lock or lock.id ~= ARGV[ID] then
  return 0
end
if ARGV[KEEP_FOR] == '0' then
  redis.call('DEL', KEYS[LOCK])
else
  local err = write(KEYS[LOCK], '-' .. lock.id, lock.token, lock.granted, ARGV[KEEP_FOR], lock.holder).err
  if err then
    return redis.error_reply(err)
  end
end
local n = ARGV[REMEMBER] ~= '' and redis.pcall('LLEN', ARGV[REMEMBER])
if type(n) == 'number' and n > 0 then
  redis.pcall('RPUSH', ARGV[REMEMBER], (ARGV[LOST] == '1' and 'l' or 'r') .. num(micros()) .. ' ' .. lock.token .. ' 0 0 0 ' .. lock.granted .. ' ' .. lock.holder)
  redis.pcall('PEXPIRE', ARGV[REMEMBER], HISTORY_MEMORY)
end
return 1
