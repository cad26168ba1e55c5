-- member_admit.lua: ends the quarantine of a member of a quorum. It follows member.lua.
--
-- KEYS   MARKER
-- Reply  1

redis.call('SET', KEYS[MARKER], memory_id() .. ' ' .. num(millis()))
return 1
