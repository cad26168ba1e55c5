-- release.lua: ends a lease, and calls its acquire off.
--
-- KEYS   1 the lock   2 the lease ID's tombstone
-- ARGV   1 lease ID   2 ms to keep the name closed, or 0
--        3 ms to remember the cancel, or 0 for no cancel   4 channel
-- Reply  {1, ''} ended   {0, ''} the lease is not live
--        with the text of the server's error instead of '' if it refused to
--        remember the cancel: a full server still lets a lease be ended

local refused = ''
if ARGV[3] ~= '0' then
  -- INVARIANT I5: also when there is a lease to end, because a second copy of
  -- its acquire may be under way.
  local reply = redis.pcall('SET', KEYS[2], '', 'PX', ARGV[3])
  refused = reply.err or ''
end

local lock = read(KEYS[1])
-- INVARIANT I4: only the exact lease.
if not lock or lock.id ~= ARGV[1] then
  return { 0, refused }
end
if ARGV[2] == '0' then
  redis.call('DEL', KEYS[1])
else
  local reply = write(KEYS[1], '-' .. lock.id, lock.token, ARGV[2], lock.holder)
  if reply.err then
    return redis.error_reply(reply.err)
  end
end
-- The message only speeds others up: without the right to publish it the
-- release still counts.
redis.pcall('PUBLISH', ARGV[4], '')
return { 1, refused }
