-- complete.lua: stores the record of a name and ends the lease.
--
-- KEYS   1 to 7 as in queue.lua
-- ARGV   1, 2 as in queue.lua   3 lease ID   4 the record: the lease ID and the
--        data, with nothing between   5 retention in ms
-- Reply  1 stored, now or by an earlier copy   0 the lease is not live

local s = open(1)
tidy(s)
local id = ARGV[3]
local h = lease(s, id)
if not h then
  done(s)
  -- INVARIANT I6: a repeat finds its own record.
  return redis.call('GETRANGE', s.record, 0, 31) == id and 1 or 0
end
redis.call('SET', s.record, ARGV[4], 'PX', ARGV[5])
finish(s, id, h)
for _, other in ipairs(s.places > 0 and redis.call('ZRANGE', s.queue, 0, -1) or {}) do
  local p = place(s, other)
  if p and p.once == '1' then
    quit(s, other)
    tell(p.inbox, other, '0')
  end
end
-- It is done, whatever becomes of those who wait.
pcall(serve, s)
done(s)
return 1
