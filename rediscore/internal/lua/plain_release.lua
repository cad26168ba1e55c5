-- plain_release.lua: ends exclusive leases of names that nobody waits for. It
-- stands alone; see plain_acquire.lua.
--
-- KEYS   for each lease: LOCK, DETAIL
-- ARGV   for each lease: its ID
-- Reply  for each lease: 1 ended, or 0: not plain, and nothing has changed for it

--@ local time = redis.call('TIME')
--@ local clock = string.format('%s%06d', time[1], time[2])
--@ local now, hour, heard = 'R' .. clock .. ' ', ' ' .. string.sub(clock, 1, HOUR), listened()
local function release(k, a)
  -- INVARIANT I4: only the exact lease. INVARIANT I7: nobody waits.
  local value, mine = redis.call('GET', KEYS[k + LOCK]), 'THIS_LAYOUT ' .. ARGV[a + ID] .. ' '
  if not value or string.sub(value, 1, #mine) ~= mine or redis.call('EXISTS', KEYS[k + DETAIL]) ~= 0 then
    return 0
  end
  return redis.call('DEL', KEYS[k + LOCK]) --@
  --@ redis.call('DEL', KEYS[k + LOCK])
  --@ local history, event = KEYS[k + DETAIL] .. HISTORY_SUFFIX, now .. value
  --@ local n = redis.pcall('RPUSH', history, event)
  --@ if heard or type(n) ~= 'number' or n % 2 == 1 or not string.find(value, hour, 36, true) then
  --@   over(history, KEYS[k + LOCK], event, n, heard)
  --@ end
  --@ return 1
end

local replies = {}
for i = 0, #KEYS / EACH_KEYS - 1 do
  -- One that fails must not spoil the others.
  local ok, reply = pcall(release, EACH_KEYS * i, EACH_ARGS * i) --@
  --@ local ok, reply = pcall(release, EACH_KEYS * i, HEAD_ARGS + EACH_ARGS * i)
  replies[i + 1] = ok and reply or 0
end
return replies
