-- breaks.lua: reads what was broken of a name. It is put behind clock.lua.
--
-- KEYS   BROKEN
-- Reply  {clock in ms, lines}  as break.lua keeps them; '' for none

return { num(millis()), redis.call('GET', KEYS[BROKEN]) or '' }
