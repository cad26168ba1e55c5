-- breaks.lua: reads the records of broken leases. It follows clock.lua.
--
-- KEYS   BROKEN
-- Reply  {clock in ms, lines}  lines as in break.lua, '' for none

return { num(millis()), redis.call('GET', KEYS[BROKEN]) or '' }
