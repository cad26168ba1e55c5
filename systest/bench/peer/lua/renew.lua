-- Renews many locks of one holder.
-- KEYS  the locks
-- ARGV  1 how the holder's values begin, 2 TTL in ms
-- reply how many are still his
local own, held = ARGV[1], 0
for _, key in ipairs(KEYS) do
  local value = redis.call('GET', key)
  if value and string.sub(value, 1, #own) == own then
    held = held + redis.call('PEXPIRE', key, ARGV[2])
  end
end
return held
