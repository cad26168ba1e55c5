-- inspect.lua: reports what the store knows of many names. It writes nothing.
--
-- KEYS   for each name six: the lock, its last token, holders, queue, waiters,
--        detail
-- ARGV   1 1 to report the places, 0 only their number
-- Reply  for each name: {now, ms left, value, last token, leases, places, n},
--        or the text of the server's error. now is the server's clock in ms,
--        ms left is -1 without an end and -2 if the name is free, '' is for no
--        token. leases: for each member its name, its end, and its record, if
--        the key's group is live. places: for each place the lease ID, its end
--        and its record; n is the number of all.

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

-- describe adds a member, its end and its record to list, unless it is over.
local function describe(list, detail, mark, member, ends)
  local record = redis.call('HGET', detail, mark .. member)
  if record and ends and tonumber(ends) > now then
    list[#list + 1], list[#list + 2], list[#list + 3] = member, ends, record
  end
end

local function inspect(first)
  local value = redis.call('GET', KEYS[first])
  local last = redis.call('GET', KEYS[first + 1]) or ''
  local holders, queue, waiters, detail = KEYS[first + 2], KEYS[first + 3], KEYS[first + 4], KEYS[first + 5]
  local reply = { now, -2, value or '', last, {}, {}, 0 }
  if value then
    reply[2] = redis.call('PTTL', KEYS[first])
  end
  if redis.call('EXISTS', holders, queue, waiters, detail) == 0 then
    return reply
  end
  local known = redis.call('HMGET', detail, 'group', 'seen')
  if value and known[1] and string.match(value, '^%*([0-9a-f]+) %d+$') == known[1] then
    local all = redis.call('ZRANGE', holders, 0, -1, 'WITHSCORES')
    for i = 1, #all, 2 do
      describe(reply[5], detail, 'h', all[i], all[i + 1])
    end
    if #all > 0 and #reply[5] == 0 then
      reply[2] = -2 -- all are over, and the next request will find it out
    end
  end
  if known[2] and redis.call('ZCARD', queue) == redis.call('ZCARD', waiters) then
    reply[7] = redis.call('ZCOUNT', waiters, '(' .. string.format('%.0f', now), '+inf')
    for _, id in ipairs(ARGV[1] ~= '0' and redis.call('ZRANGE', queue, 0, -1) or {}) do
      describe(reply[6], detail, 'w', id, redis.call('ZSCORE', waiters, id))
    end
  end
  return reply
end

local replies = {}
for i = 1, #KEYS, 6 do
  -- One that fails must not spoil the others.
  local ok, reply = pcall(inspect, i)
  replies[#replies + 1] = ok and reply or type(reply) == 'table' and reply.err or tostring(reply)
end
return replies
