-- member_admit.lua: ends the quarantine of a member of a quorum.
--
-- KEYS   1 the marker
-- Reply  1

redis.call('SET', KEYS[1], this_run() .. ' ' .. num(millis()))
return 1
