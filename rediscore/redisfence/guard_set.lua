-- guard_set.lua: the body of Set; see guard.lua.
--
-- KEYS   1 the resource
-- ARGV   1 value; 2 TTL in ms, 0 for none
-- Reply  the server's

if ARGV[2] == '0' then
  return redis.call('SET', KEYS[1], ARGV[1])
end
return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
