-- refresh.lua: refreshes many places. It follows serve.lua.
--
-- KEYS   for each name: as in queue.lua
-- ARGV   as in queue.lua; for each place: AT the number of the key before those of its name; ID of
--        the lease; WAITER_TTL in ms, 0 to give the place up
-- Reply  for each place:
--        {1, token}  the lock was handed to it
--        {0, ms left, holder, place, places, us, released}
--                    as in acquire.lua; place is 0 if it was given up
--        {-3}        as in acquire.lua
--        {-5}        the lease ID has neither a place nor a lease
--        {MORE}      as in acquire.lua
--        text        of the server's error

-- NAME is the least amount of work that a name counts for.
local NAME = 4

local replies = {}

-- refresh refreshes places of one name, and writes their replies. Each of asked has the index of
-- the request, the lease ID and the waiter TTL.
local function refresh(at, asked)
  local s = room < NAME and { more = true } or open(at)
  room = room - NAME
  if not s.err and not s.more then
    settle(s)
  end
  local ids, kept, leaving, way = {}, {}, {}
  for i, a in ipairs(asked) do
    ids[i], replies[a.i] = a.id, s.err or { MORE }
  end
  if s.err or s.more then
    return
  end
  local records = s.places > 0 and redis.call('HMGET', s.detail, unpack(fields('w', ids))) or {}
  for i, a in ipairs(asked) do
    local h, n = lease(s, a.id), rank(s, a.id)
    local ends, ttl, rest = string.match(records[i] or '', '^(%d+) (%d+)( .*)$')
    if h then
      -- Not lengthened, because the client does not know of the lease yet. INVARIANT I7.
      replies[a.i] = { 1, tonumber(h.token) }
    elseif n == 0 or not ends or tonumber(ends) <= millis() then
      replies[a.i] = { -5 }
    elseif a.ttl == 0 then
      leaving[#leaving + 1] = a
    elseif s.failed then
      replies[a.i] = s.failed.err or s.failed
    else
      kept[#kept + 1] = { id = a.id, ends = tonumber(ends), ttl = tonumber(ttl), rest = rest, asked = a.ttl }
      way = way or blocker(s)
      replies[a.i] = { way[1], way[2], way[3], n, way[5], way[6], way[7] }
    end
  end
  refreshPlaces(s, kept)
  for _, a in ipairs(leaving) do
    local h = lease(s, a.id) -- granted if the waiter before it has just left
    giveUpPlaces(s, { a.id })
    settle(s) -- hands the lock to waiters that this place blocked; the rest is for the next call
    replies[a.i] = h and { 1, tonumber(h.token) } or blocker(s)
  end
end

local names, order = {}, {}
for i = 1, (#ARGV - HEAD_ARGS) / EACH_ARGS do
  local a = HEAD_ARGS + EACH_ARGS * (i - 1)
  local at = tonumber(ARGV[a + AT])
  if not names[at] then
    names[at], order[#order + 1] = {}, at
  end
  table.insert(names[at], { i = i, id = ARGV[a + ID], ttl = tonumber(ARGV[a + WAITER_TTL]) })
end
for _, at in ipairs(order) do
  -- An error in one name must not spoil the other replies.
  local ok, err = pcall(refresh, at, names[at])
  for _, a in ipairs(ok and {} or names[at]) do
    replies[a.i] = type(err) == 'table' and err.err or tostring(err)
  end
end
return replies
