-- plain_acquire.lua: takes exclusive locks that are free and that nobody waits
-- for. It stands alone, because each call of a script makes all its functions anew.
--
-- KEYS   for each request: LOCK, FENCE, DETAIL, CANCELLED, the lease ID's
--        tombstone
-- ARGV   TOKEN_MEMORY of the last token in ms; for each request: ID of the
--        lease, TTL in ms, HOLDER as JSON
-- Reply  for each request: the token, or 0: not plain. Then nothing has changed
--        for it, but perhaps its last token; acquire.lua knows what it is.

local time = redis.call('TIME')
local token = string.format('%s%06d', time[1], time[2])
--@ local hour, granted = string.sub(token, 1, HOUR) .. '0000000000', ' ' .. token .. ' ' .. token .. ' '
--@ local number, heard = tonumber(token), listened()

local function acquire(k, a)
  -- INVARIANT I1: no lease. INVARIANT I5: no cancel. INVARIANT I7: nobody waits.
  if redis.call('EXISTS', KEYS[k + LOCK], KEYS[k + DETAIL], KEYS[k + CANCELLED]) ~= 0 then
    return 0
  end
  -- INVARIANT I2: above the last token. Digits of the same length compare like
  -- numbers. One that leads the clock, or is none, is for drawToken.
  local last = redis.call('GET', KEYS[k + FENCE])
  if last and not (#last == #token and last < token and not string.find(last, '%D')) then
    return 0
  end
  -- A full server refuses the first write of a script. INVARIANT I11: the end
  -- counts from the token, which is the clock. If the second write fails, a
  -- token is skipped.
  redis.call('SET', KEYS[k + FENCE], token, 'PX', ARGV[TOKEN_MEMORY])
  redis.call('SET', KEYS[k + LOCK], 'THIS_LAYOUT ' .. ARGV[a + ID] .. ' ' .. ARGV[a + TTL] .. ' ' .. token .. ' ' .. token .. ' ' .. ARGV[a + HOLDER], 'PX', ARGV[a + TTL]) --@
  --@ local value = 'THIS_LAYOUT ' .. ARGV[a + ID] .. ' ' .. ARGV[a + TTL] .. granted .. ARGV[a + HOLDER]
  --@ redis.call('SET', KEYS[k + LOCK], value, 'PX', ARGV[a + TTL])
  --@ local history = KEYS[k + DETAIL] .. HISTORY_SUFFIX
  --@ local n = redis.pcall('RPUSH', history, value)
  --@ if heard or type(n) ~= 'number' or n == 1 or n % 2 == 0 or n > MOST_ITEMS or not last or last < hour then
  --@   began(history, KEYS[k + LOCK], value, n, token, heard)
  --@ end
  return tonumber(token) --@
  --@ return number
end

local replies = {}
for i = 0, #KEYS / EACH_KEYS - 1 do
  -- One that fails must not spoil the others.
  local ok, reply = pcall(acquire, EACH_KEYS * i, HEAD_ARGS + EACH_ARGS * i)
  replies[i + 1] = ok and reply or 0
end
return replies
