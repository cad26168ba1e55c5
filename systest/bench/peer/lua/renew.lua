-- Renews many locks of one holder.
-- KEYS  the locks
-- ARGV  1 value of the holder, 2 TTL in ms
-- reply how many are still his
local held = 0
for _, key in ipairs(KEYS) do
  if redis.call('GET', key) == ARGV[1] then
    held = held + redis.call('PEXPIRE', key, ARGV[2])
  end
end
return held
