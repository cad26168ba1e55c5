-- inspect.lua: describes many names. It writes nothing. It follows clock.lua and precedes each.lua.
--
-- KEYS   for each name: LOCK, FENCE, HOLDERS, QUEUE, DETAIL
-- ARGV   PLACES how many places of each name to describe at most; FROM the number of the place
--        after which to begin, -inf at first
-- Reply  for each name: {now, ms left, value, last token, leases, places, n, rest, next, part};
--        -6 if the client must request the name again; or the text of the server's error
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
  local value, last = redis.call('GET', KEYS[at + LOCK]), redis.call('GET', KEYS[at + FENCE])
  local err = value and unknown(value)
  if err then
    return err
  end
  local left, leases, places, n, rest, next, part = value and redis.call('PTTL', KEYS[at + LOCK]) or -2, {}, {}, 0, 0, '', 0
  local holders, queue, detail = KEYS[at + HOLDERS], KEYS[at + QUEUE], KEYS[at + DETAIL]
  if redis.call('EXISTS', holders, queue, detail) > 0 then
    local layout, group, due, mending = unpack(redis.call('HMGET', detail, 'layout', 'group', 'due', 'mend'))
    err = unknownDetail(detail, layout)
    if err then
      return err
    end
    local mine = value and group and string.match(value, '^THIS_LAYOUT %*([0-9a-f]+) %d+$') == group
    local live = '(' .. num(now)
    local held = mine and ARGV[FROM] == '-inf' and redis.call('ZCOUNT', holders, live, '+inf') or 0
    -- A queue without detail does not count. Before 'due' no place expires.
    n = layout and redis.call('ZCARD', queue) or 0
    local partly = mending or tonumber(due or 0) <= now
    local wanted = partly and n or math.min(tonumber(ARGV[PLACES]), n)
    if room < ROOM and held + wanted > room then
      return -6
    end
    if held > 0 then
      rest = held > room and 1 or 0
      describe(leases, detail, 'h', halves(redis.call('ZRANGEBYSCORE', holders, live, '+inf', 'WITHSCORES', 'LIMIT', 0, room)))
    elseif mine and redis.call('EXISTS', holders) == 1 then
      left = -2 -- all leases have expired, and the next request will end them
    end
    if wanted > 0 then
      local limit = math.min(wanted, math.max(room, 1))
      local ids, numbers = halves(redis.call('ZRANGEBYSCORE', queue, '(' .. ARGV[FROM], '+inf', 'WITHSCORES', 'LIMIT', 0, limit))
      describe(places, detail, 'w', ids, numbers)
      next = #ids == limit and numbers[limit] or ''
      n, part = partly and #places / 3 or n, partly and 1 or 0
    end
  end
  return { now, left, value or '', last or '', leases, places, n, rest, next, part }
end
