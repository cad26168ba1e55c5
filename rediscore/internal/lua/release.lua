-- release.lua: ends a lease, gives up a place, and cancels an acquire.
--
-- KEYS   as in queue.lua, and CANCELLED, the lease ID's tombstone
-- ARGV   as in queue.lua, and ID of the lease; KEEP_FOR ms to keep the name
--        closed, or 0; CANCEL_MEMORY ms to remember the cancel, or 0 for none
--        LOST 1 if the holder counts it as lost
-- Reply  {1, '', 0} ended   {0, '', 0} the lease is not live
--        with the text of the server's error instead of '' if it refused to
--        remember the cancel: a full server still lets a lease be ended; and
--        with 1 at the end if there is more to do: send it again

local id, remember = ARGV[ID], ''
if ARGV[CANCEL_MEMORY] ~= '0' then
  -- INVARIANT I5: even if there is a lease to end, because a second copy of
  -- its acquire may be under way.
  remember = redis.pcall('SET', KEYS[CANCELLED], '', 'PX', ARGV[CANCEL_MEMORY]).err or ''
end

local s = open(0, value)
s.ends = ARGV[LOST] == '1' and 'l' or 'r'
if s.unknown then
  return redis.error_reply(s.unknown)
end
purge(s)
if s.more then
  -- The lease goes on until then, so that nobody comes in between.
  return { 0, remember, 1 }
end
local h = lease(s, id)
if h and ARGV[KEEP_FOR] ~= '0' then
  local err = keepClosed(s, id, h, tonumber(ARGV[KEEP_FOR]))
  if err then
    return redis.error_reply(err)
  end
elseif h then
  endLease(s, id, h)
end
giveUpPlaces(s, { id })
serveOrYield(s)
if h and ARGV[KEEP_FOR] ~= '0' then
  -- The name may be closed for less long than it seemed.
  wake(s, '0')
end
sweep(s)
return { h and 1 or 0, remember, s.more and 1 or 0 }
