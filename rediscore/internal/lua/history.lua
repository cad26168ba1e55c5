-- history.lua: reads the history of a name, and first records the events that no request has
-- reported. It follows serve.lua.
--
-- KEYS   as in queue.lua; BROKEN as in break.lua
-- ARGV   as in queue.lua
-- Reply  {clock in us, events of leases, events of places, lines}
--                the events as in feed.lua, the oldest first; the lines as in break.lua. The lines
--                outlast the events
--        {MORE}  as in acquire.lua

local s = open(0)
if not s.err and not settle(s) then
  return { MORE }
end
local lines = redis.pcall('GET', KEYS[BROKEN])
return {
  num(micros()), redis.call('LRANGE', s.history, 0, -1), redis.call('LRANGE', s.crowd, 0, -1),
  type(lines) == 'string' and lines or '',
}
