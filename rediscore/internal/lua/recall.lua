-- recall.lua: reads the record of a name.
--
-- KEYS   RECORD
-- Reply  {ms left, record}, or nil if there is none

local record = redis.call('GET', KEYS[RECORD])
return record and { redis.call('PTTL', KEYS[RECORD]), string.sub(record, 33) }
