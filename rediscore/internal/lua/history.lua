-- history.lua: reads the history of a name, when all is written down that nobody has
-- reported.
--
-- KEYS   as in queue.lua
-- ARGV   as in queue.lua
-- Reply  {clock in us, items}  as feed.lua keeps them, the oldest first
--        {MORE}                there is more to do first: send it again

local s = open(0)
if not s.err and not settle(s) then
  return { MORE }
end
return { num(micros()), redis.call('LRANGE', s.history, 0, -1) }
