-- renew.lua: the least that a renewal of many leases does.
--
-- KEYS   for each lease: its lock
-- ARGV   TTL in ms; for each lease: how its lock's value begins
-- Reply  how many were renewed
local renewed = 0
for i, key in ipairs(KEYS) do
  local value, prefix = redis.call('GET', key), ARGV[i + 1]
  if value and string.sub(value, 1, #prefix) == prefix then
    renewed = renewed + redis.call('PEXPIRE', key, ARGV[1])
  end
end
return renewed
