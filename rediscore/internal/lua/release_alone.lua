-- release_alone.lua: ends one exclusive lease by its key alone, which a Redis
-- Cluster serves even while it moves the slot. It is put behind value.lua.
--
-- KEYS   LOCK
-- ARGV   ID of the lease; KEEP_FOR ms to keep the name closed, or 0
--        LOST 1 if the holder counts it as lost; REMEMBER the key of the history,
--        or nothing. It is not declared: while it is on the other node nothing is
--        written down, and the lease counts as expired
-- Reply  1 ended, and nobody was handed the lock   0 another has it, or nobody

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
if ARGV[REMEMBER] ~= '' then
  redis.pcall('RPUSH', ARGV[REMEMBER], (ARGV[LOST] == '1' and 'l' or 'r') .. num(micros()) .. ' ' .. lock.token .. ' 0 0 0 ' .. lock.granted .. ' ' .. lock.holder)
  redis.pcall('PEXPIRE', ARGV[REMEMBER], HISTORY_MEMORY)
end
return 1
