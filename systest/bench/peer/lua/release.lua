-- Deletes a lock that is still its holder's.
-- KEYS  1 the lock
-- ARGV  1 value of the holder
-- reply 1, or 0 if it is another's or nobody's
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
