-- The least that a lock with a fencing token does.
-- KEYS  1 the lock, 2 its last token
-- ARGV  1 value of the holder, 2 TTL in ms
-- reply the token, or nil if the lock is held
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return redis.call('INCR', KEYS[2])
end
return false
