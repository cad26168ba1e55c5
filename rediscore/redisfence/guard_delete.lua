-- guard_delete.lua: the body of Delete; see guard.lua.
--
-- KEYS   1 the resource
-- Reply  1 deleted, 0 there was none

return redis.call('DEL', KEYS[1])
