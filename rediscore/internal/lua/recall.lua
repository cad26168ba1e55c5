-- recall.lua: reads the record of a name.
--
-- KEYS   1 the record
-- Reply  {ms left, data}   nil if there is none

local record = redis.call('GET', KEYS[1])
return record and { redis.call('PTTL', KEYS[1]), string.sub(record, 33) }
