-- state.lua: the shared leases and permits of a name. It follows value.lua, clock.lua and
-- token.lua, and precedes the engine's full scripts.
--
-- While a name has shared leases or permits, its key has their group; see value.lua. Its
-- companions are these keys, and those of queue.lua:
--     holders  sorted set: member -> end in ms of the server's clock. A member is a lease ID, or
--              '-<lease ID> <token>' for a lease that has ended and keeps its share of the name
--              closed
--     detail   hash with the fields
--              layout     the number of the layout
--              group      as in the key
--              used       permits
--              seen       the greatest clock in ms by which an end was set
--              mend, due  as in mend
--              h<member>  <TTL in ms> <token> <permits> <granted> <holder as JSON>
-- A group has the lease ID of its first lease as its name. The leases count only while key and
-- detail have the same group and holders exists. So a user who deletes the key ends all leases,
-- and after the loss of a companion the name stays closed until the key expires.
--
-- In every layout detail exists as long as any of its companions: it is made before the first,
-- deleted with the last, and expires last. So detail alone shows whether there are companions, and
-- their layout. If that is another one, or missing, every script refuses the name and changes
-- nothing. If a user deleted detail, the other companions do not count.
--
-- A state s is a table with the names of the keys (key, holders, queue, detail, and more in
-- queue.lua), the lock that read found, and
--     err      why the name cannot be used, or nil
--     unknown  the same, if the reason is the layout
--     mine     whether the leases in holders are live
--     over     whether there is a group whose leases are not live
--     whole    whether detail exists
--     used, seen, mend, due  as in detail
--     places   the length of the queue
--     more     whether some work remains that this call had no room for

-- A script does a bounded amount of work for leases and places of other clients, so that it does
-- not block the server: it ends, grants or reads ROOM of them. Then it sets s.more, and its reply
-- asks for another call. INVARIANT I7: until no work remains, no request is granted and no
-- waiter learns its place.
local ROOM = 256
local room = ROOM

-- take counts a list that was read with room as its limit.
local function take(s, list)
  s.more = s.more or #list >= room
  room = room - #list
  return list
end

-- outlast makes companions last as long as a lease or place that ends at ends. It always writes.
-- A full server refuses only the first write of a script. So if outlast comes first, the server
-- lets leases and places be renewed.
local function outlast(ends, ...)
  for _, key in ipairs({ ... }) do
    redis.call('PEXPIRE', key, num(math.max(redis.call('PTTL', key), ends - millis() + SLACK)))
  end
end

-- fields returns the fields of members or places in detail.
local function fields(mark, list)
  local all = {}
  for i, member in ipairs(list) do
    all[i] = mark .. member
  end
  return all
end

-- writeGroup writes the group into the lock's key, whose last lease ends at ends.
local function writeGroup(s, ends)
  redis.call('SET', s.key, 'THIS_LAYOUT *' .. s.lock.group .. ' ' .. num(s.lock.limit), 'PXAT', ends)
end

-- seal makes the lock's key expire with the last lease, and writes the key if it is missing.
local function seal(s)
  local last = redis.call('ZRANGE', s.holders, -1, -1, 'WITHSCORES')[2]
  -- Time goes on during a script. An end that has just passed deletes the key, and a later lease
  -- must then write it again.
  if redis.call('PEXPIREAT', s.key, last) == 0 then
    writeGroup(s, last)
  end
end

-- leaseOf returns the lease of a member of holders, or nil if its record is lost.
local function leaseOf(s, member, ends, record)
  local ttl, token, permits, granted, holder = string.match(record or '', '^(%d+) (%d+) (%d+) (%d+) (.*)$')
  ends = tonumber(ends)
  return ttl and {
    id = member, closed = string.sub(member, 1, 1) == '-', ends = ends, left = ends - millis(), ttl = tonumber(ttl),
    token = token, mode = s.lock.limit == 0 and 1 or 2, limit = s.lock.limit, permits = tonumber(permits), granted = granted,
    holder = holder,
  }
end

-- holding returns the lease of a member of holders, or nil.
local function holding(s, member)
  local ends = redis.call('ZSCORE', s.holders, member)
  return ends and leaseOf(s, member, ends, redis.call('HGET', s.detail, 'h' .. member)) or nil
end

-- lease returns the live lease with this ID, or nil. INVARIANT I4: only the exact lease.
local function lease(s, id)
  if s.lock and s.lock.id == id then
    return s.lock
  end
  return s.mine and holding(s, id) or nil
end

-- describe returns the record of a lease.
local function describe(h)
  return num(h.ttl) .. ' ' .. h.token .. ' ' .. num(h.permits) .. ' ' .. h.granted .. ' ' .. h.holder
end

-- putShared writes leases into holders and detail.
local function putShared(s, leases)
  local ends, records, last = {}, { 'layout', 'THIS_LAYOUT', 'group', s.lock.group, 'used', num(s.used), 'seen', num(millis()) }, 0
  for _, h in ipairs(leases) do
    ends[#ends + 1], ends[#ends + 2] = num(h.ends), h.id
    records[#records + 1], records[#records + 2] = 'h' .. h.id, describe(h)
    last = math.max(last, h.ends)
  end
  redis.call('HSET', s.detail, unpack(records))
  redis.call('ZADD', s.holders, unpack(ends))
  outlast(last, s.holders, s.detail)
  seal(s)
end

-- beginGroup begins a group in the state, before its first lease is written.
local function beginGroup(s, group, limit)
  s.lock, s.mine, s.used = { group = group, limit = limit, left = s.lock and s.lock.left or 0 }, true, 0
end

-- endGroup ends the group: its leases, and its key if the key has this group.
local function endGroup(s)
  redis.call('UNLINK', s.holders)
  redis.call('HDEL', s.detail, 'group', 'used')
  if s.mine then
    redis.call('DEL', s.key)
    s.lock, s.mine = nil, false
  end
  s.used = 0
end

-- endShared ends leases that have this many permits together.
local function endShared(s, members, permits)
  redis.call('ZREM', s.holders, unpack(members))
  redis.call('HDEL', s.detail, unpack(fields('h', members)))
  if redis.call('EXISTS', s.holders) == 0 then
    endGroup(s)
    return
  end
  s.used = s.used - permits
  redis.call('HSET', s.detail, 'used', num(s.used))
  seal(s)
end

-- lengthenShared makes a lease last at least ttl ms.
local function lengthenShared(s, h, ttl)
  local ends = millis() + ttl
  if ends <= h.ends then
    return
  end
  if ends > (s.kept or 0) then
    outlast(ends, s.holders, s.detail)
    redis.call('HSET', s.detail, 'seen', num(millis()))
    s.kept = ends
  end
  redis.call('ZADD', s.holders, num(ends), h.id)
  if h.ttl ~= ttl then
    h.ttl = ttl
    redis.call('HSET', s.detail, 'h' .. h.id, describe(h))
  end
  h.ends, h.left = ends, ttl
end

-- lengthen makes a lease and the last token last at least ttl ms. It returns the text of the error
-- if the server refuses. The caller must call lengthened afterwards.
local function lengthen(s, h, ttl)
  local err
  if h == s.lock then
    err = lengthenExclusive(s.key, h, num(ttl))
  else
    lengthenShared(s, h, ttl)
  end
  keepToken(s.fence, h.token, h.left, ARGV[TOKEN_MEMORY])
  return err
end

-- lengthened makes the key and the history of a name last as long as leases after lengthen.
local function lengthened(s)
  if s.kept then
    seal(s)
  end
  if ARGV[FEED] ~= '' then
    redis.pcall('PEXPIRE', s.detail .. HISTORY_SUFFIX, num(HISTORY_MEMORY + math.max(redis.call('PTTL', s.key), 0)))
  end
end

-- readDetail reads the fields of detail that concern the whole name, and finds out whether the
-- leases in holders are live. It returns the text of the error if the layout is another one.
local function readDetail(s)
  local layout, group, used, seen, mending, ours, alien, gap, last, lasts, once, due = unpack(redis.call('HMGET', s.detail,
    'layout', 'group', 'used', 'seen', 'mend', 'ours', 'alien', 'gap', 'last', 'lasts', 'once', 'due'))
  local err = unknownDetail(s.detail, layout)
  if err then
    return err
  end
  local any = redis.call('EXISTS', s.holders) == 1
  s.whole, s.used, s.seen, s.mend = layout, tonumber(used or 0), tonumber(seen or 0), mending
  s.ours, s.alien, s.gap = tonumber(ours), tonumber(alien), tonumber(gap)
  s.number, s.lasts, s.once, s.due = tonumber(last or 0), tonumber(lasts or 0), once, tonumber(due)
  s.mine = any and s.lock ~= nil and s.lock.group ~= nil and s.lock.group == group
  s.over = not s.mine and (any or group)
  return nil
end

-- giveUpPlaces is in queue.lua, and nil in a script without queue.lua.
local giveUpPlaces

-- amend deletes the records of members, or of places, that are not in their set, and shortens the
-- others to their TTL from now. It gives up the places that have expired, and returns how many.
-- s.due becomes the first end of the remaining places.
local function amend(s, mark, set, list, records)
  local gone, late, over = {}, {}, {}
  for i, ends in ipairs(#list > 0 and redis.call('ZMSCORE', set, unpack(list)) or {}) do
    local record = records[i]
    if ends and mark == 'w' then
      ends, record = string.match(record, '^(%d+) (.*)$')
    end
    local latest = millis() + tonumber(string.match(record or '', '^%d+') or 0)
    if not ends then
      gone[#gone + 1] = mark .. list[i]
    elseif mark == 'w' and tonumber(ends) <= millis() and giveUpPlaces then
      over[#over + 1] = list[i]
    elseif mark == 'w' then
      if tonumber(ends) > latest then
        ends = latest
        late[#late + 1], late[#late + 2] = 'w' .. list[i], num(ends) .. ' ' .. record
      end
      s.due = math.min(s.due or ends, ends)
    elseif tonumber(ends) > latest then
      late[#late + 1], late[#late + 2] = num(latest), list[i]
    end
  end
  if #gone > 0 then
    redis.call('HDEL', s.detail, unpack(gone))
  end
  if #late > 0 then
    redis.call(mark == 'w' and 'HSET' or 'ZADD', mark == 'w' and s.detail or set, unpack(late))
  end
  if #over > 0 then
    giveUpPlaces(s, over)
  end
  return #over
end

-- mend amends all records, a page in each call. It begins
--     when a set was lost;
--     when the clock went back: then no lease or place may last longer than its last TTL from
--     now. No end is later than 'seen' plus its TTL, so that at a later clock there is nothing
--     to do;
--     when a place may have expired: none has before 'due'. While 'mend' is set, 'due' is the
--     first end of the places that it has read, and of those added meanwhile.
-- 'mend' is the cursor of HSCAN, and the greatest clock by which ends were shortened, 0 if the
-- clock did not go back.
local function mend(s)
  local cursor, clock = string.match(s.mend or '', '^(%d+) (%d+)$')
  clock = tonumber(clock or 0)
  local back = clock > 0 or s.seen > millis()
  if not s.mend and not back and not (giveUpPlaces and s.places > 0 and (s.due or 0) <= millis()) then
    return
  end
  if back then
    cursor, clock = clock > 0 and cursor or nil, math.max(clock, millis())
  end
  s.due = (cursor or '0') ~= '0' and s.due or nil
  redis.call('HDEL', s.detail, 'mend', 'due') -- needs no memory; see outlast
  local page = redis.call('HSCAN', s.detail, cursor or '0', 'COUNT', ROOM)
  local lists = { h = { {}, {} }, w = { {}, {} } }
  for i = 1, #page[2], 2 do
    local list = lists[string.sub(page[2][i], 1, 1)]
    if list then
      list[1][#list[1] + 1], list[2][#list[2] + 1] = string.sub(page[2][i], 2), page[2][i + 1]
    end
  end
  amend(s, 'h', s.holders, unpack(lists.h))
  local over = amend(s, 'w', s.queue, unpack(lists.w))
  s.mend = page[1] ~= '0' and page[1] .. ' ' .. num(clock) or nil
  if s.mend then
    redis.call('HSET', s.detail, 'mend', s.mend)
    -- If some have expired, no request learns its place before all of them are gone.
    s.more = s.more or back or over > 0
  elseif back then
    s.seen = clock
    redis.call('HSET', s.detail, 'seen', num(clock))
    if s.mine then
      seal(s)
    end
  end
  if s.due then
    redis.call('HSET', s.detail, 'due', num(s.due))
  end
end
