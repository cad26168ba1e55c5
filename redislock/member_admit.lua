-- member_admit.lua: ends the quarantine of a member of a quorum.
--
-- KEYS   1 the marker
-- Reply  1

local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
if not run then
  error('the server does not tell its run ID')
end
redis.call('SET', KEYS[1], run .. ' ' .. num(math.floor(micros() / 1000)))
return 1
