-- history.lua: reads the history of a name, after it has written down the events that no
-- request has reported.
--
-- KEYS   as in queue.lua, and BROKEN, what was broken
-- ARGV   as in queue.lua
-- Reply  {clock in us, items of leases, items of those who wait, lines}
--                the first two as feed.lua keeps them, the oldest first; the lines are
--                what break.lua keeps, which outlast the items
--        {MORE}  there is more to do first: send it again

local s = open(0)
if not s.err and not settle(s) then
  return { MORE }
end
local lines = redis.pcall('GET', KEYS[BROKEN])
return {
  num(micros()), redis.call('LRANGE', s.history, 0, -1), redis.call('LRANGE', s.crowd, 0, -1),
  type(lines) == 'string' and lines or '',
}
