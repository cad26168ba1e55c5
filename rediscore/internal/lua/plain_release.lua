-- plain_release.lua: ends exclusive leases of names that have no queue.
--
-- KEYS   for each lease: LOCK, DETAIL
-- ARGV   FEED as in feed.lua; for each lease: its ID
-- Reply  for each lease: 1 it was ended; 0 the request is not plain

local clock, hour
if writes then
  local time = redis.call('TIME')
  clock = string.format('%s%06d', time[1], time[2])
  hour = ' ' .. string.sub(clock, 1, HOUR)
end

local function plain(k, a)
  -- INVARIANT I4: only the exact lease. INVARIANT I7: no place.
  local value, mine = redis.call('GET', KEYS[k + LOCK]), 'THIS_LAYOUT ' .. ARGV[a + ID] .. ' '
  if not value or string.sub(value, 1, #mine) ~= mine or redis.call('EXISTS', KEYS[k + DETAIL]) ~= 0 then
    return 0
  end
  if writes and not recorded(k, 'R' .. clock .. ' ' .. value, clock, 0, not string.find(value, hour, 36, true), 0) then
    return 0
  end
  return redis.call('DEL', KEYS[k + LOCK])
end
