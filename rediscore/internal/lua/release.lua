-- release.lua: ends a lease, gives up a place, and calls an acquire off.
--
-- KEYS   1 to 7 as in queue.lua   8 the lease ID's tombstone
-- ARGV   1, 2 as in queue.lua   3 lease ID   4 ms to keep the name closed, or 0
--        5 ms to remember the cancel, or 0 for no cancel
-- Reply  {1, '', 0} ended   {0, '', 0} the lease is not live
--        with the text of the server's error instead of '' if it refused to
--        remember the cancel: a full server still lets a lease be ended; and
--        with 1 at the end if there is more to do: send it again

local id, remember = ARGV[3], ''
if ARGV[5] ~= '0' then
  -- INVARIANT I5: also when there is a lease to end, because a second copy of
  -- its acquire may be under way.
  remember = redis.pcall('SET', KEYS[8], '', 'PX', ARGV[5]).err or ''
end

local s = open(1)
tidy(s)
if s.more then
  -- The lease goes on until then, so that nobody comes in between.
  return { 0, remember, 1 }
end
local h = lease(s, id)
if h and ARGV[4] ~= '0' then
  local err = close(s, id, h, tonumber(ARGV[4]))
  if err then
    return redis.error_reply(err)
  end
elseif h then
  finish(s, id, h)
end
quit(s, { id })
pass(s)
if h and ARGV[4] ~= '0' and s.places > 0 then
  -- The name may be closed for less long than it seemed.
  local p = place(s, redis.call('ZRANGE', s.queue, 0, 0)[1])
  if p then
    tell(p.inbox, p.id, '0')
  end
end
done(s)
return { h and 1 or 0, remember, s.more and 1 or 0 }
