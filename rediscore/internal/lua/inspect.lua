-- inspect.lua: describes many names. It writes nothing. It follows clock.lua and precedes each.lua.
--
-- KEYS   for each name: LOCK, FENCE, HOLDERS, QUEUE, DETAIL
-- ARGV   PLACES how many places of each name to describe at most; FROM the number of the place
--        after which to begin, -inf at first
-- Reply  for each name: {now, ms left, value, last token, leases, places, n, rest, next, part};
--        -6 if the client must ask for the name again; or the text of the server's error
--        now         the server's clock in ms
--        ms left     -1 for no expiry, -2 if the name is free
--        value       of the lock's key, '' for none
--        last token  '' for none
--        leases      name of the member, end and record of each, if the key's group is live
--        places      lease ID, end and record of each
--        n           the length of the queue; with part 1, the length of places
--        rest        1 if there are more leases, which inspect_rest.lua reads
--        next        the number of the last place read, '' if it was the last of the queue
--        part        1 if some places may have expired

local now = millis()

-- ROOM is how many leases and places one call reads.
local ROOM = 256
local room = ROOM

-- describe appends members, their ends and records to list, without those that have expired. The
-- record of a place begins with its end.
local function describe(list, detail, mark, members, scores)
  local fields = {}
  for i, member in ipairs(members) do
    fields[i] = mark .. member
  end
  local records = #fields > 0 and redis.call('HMGET', detail, unpack(fields)) or {}
  for i, member in ipairs(members) do
    local ends, record = scores[i], records[i]
    if mark == 'w' then
      ends, record = string.match(record or '', '^(%d+) (.*)$')
    end
    if record and tonumber(ends) > now then
      list[#list + 1], list[#list + 2], list[#list + 3] = member, ends, record
    end
  end
end

-- halves splits a list of alternating members and numbers.
local function halves(list)
  local members, numbers = {}, {}
  for i = 1, #list, 2 do
    members[#members + 1], numbers[#numbers + 1] = list[i], list[i + 1]
  end
  room = room - #members
  return members, numbers
end

local function one(at)
  local value = redis.pcall('GET', KEYS[at + LOCK])
  local lock = read(KEYS[at + LOCK], value)
  if lock and lock.err then
    return lock.err
  end
  local holders, queue, detail = KEYS[at + HOLDERS], KEYS[at + QUEUE], KEYS[at + DETAIL]
  local reply = { now, lock and lock.left or -2, value or '', redis.call('GET', KEYS[at + FENCE]) or '', {}, {}, 0, 0, '', 0 }
  if redis.call('EXISTS', holders, queue, detail) == 0 then
    return reply
  end
  local known, live = redis.call('HMGET', detail, 'group', 'layout', 'due', 'mend'), '(' .. num(now)
  local err = unknownDetail(detail, known[2])
  if err then
    return err
  end
  local mine = lock and lock.group == known[1]
  local leases = mine and ARGV[FROM] == '-inf' and redis.call('ZCOUNT', holders, live, '+inf') or 0
  -- A queue without detail does not count. Before 'due' no place expires.
  local all, part = known[2] and redis.call('ZCARD', queue) or 0, known[4] or tonumber(known[3] or 0) <= now
  local places = part and all or math.min(tonumber(ARGV[PLACES]), all)
  if room < ROOM and leases + places > room then
    return -6
  end
  if leases > 0 then
    reply[8] = leases > room and 1 or 0
    describe(reply[5], detail, 'h', halves(redis.call('ZRANGEBYSCORE', holders, live, '+inf', 'WITHSCORES', 'LIMIT', 0, room)))
  elseif mine and redis.call('EXISTS', holders) == 1 then
    reply[2] = -2 -- all leases have expired, and the next request will end them
  end
  reply[7] = all
  if places > 0 then
    local n = math.min(places, math.max(room, 1))
    local ids, numbers = halves(redis.call('ZRANGEBYSCORE', queue, '(' .. ARGV[FROM], '+inf', 'WITHSCORES', 'LIMIT', 0, n))
    describe(reply[6], detail, 'w', ids, numbers)
    reply[9] = #ids == n and numbers[n] or ''
    reply[7], reply[10] = part and #reply[6] / 3 or all, part and 1 or 0
  end
  return reply
end
