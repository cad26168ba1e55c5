-- refresh.lua: refreshes many places, and reports what has become of them.
--
-- KEYS   for each place, as in queue.lua
-- ARGV   as in queue.lua; for each place: ID of the lease, WAITER_TTL in ms, 0 to
--        give it up
-- Reply  for each place: {1, token} it was handed the lock
--        {0, ms left, holder, place, places, us, released}, {-3}  as in acquire.lua;
--        place 0 if it was given up
--        {-5} neither place nor lease, {MORE} there is more to do first: send
--        it again, or the text of the server's error

-- So many pieces of work a name may be at least.
local NAME = 4

local states = {} -- by key: many places may be of one name
local function state(at)
  local s = states[KEYS[at + LOCK]]
  if not s then
    if room < NAME then
      return { more = true }
    end
    room = room - NAME
    s = open(at)
    if not s.err then
      settle(s)
    end
    states[s.key] = s
  end
  return s
end

local function refresh(at, id, ttl)
  local s = state(at)
  if s.err then
    return s.err
  end
  if s.more then
    return { MORE }
  end
  local h = lease(s, id)
  if h then
    -- Not lengthened: its holder does not know of it yet. INVARIANT I7.
    return { 1, tonumber(h.token) }
  end
  local p, n = place(s, id)
  if not p then
    return { -5 }
  end
  if ttl == 0 then
    giveUpPlaces(s, { id })
    s.way = nil
    settle(s) -- the others may have waited for it; what is left to do is for the next
    return blocker(s, 0)
  end
  if s.failed then
    return s.failed.err or s.failed
  end
  refreshPlace(s, p, ttl, p.inbox)
  s.way = s.way or blocker(s, 0)
  return { s.way[1], s.way[2], s.way[3], n, s.way[5], s.way[6], s.way[7] }
end

local replies, n = {}, (#ARGV - HEAD_ARGS) / EACH_ARGS
for i = 0, n - 1 do
  -- One that fails must not spoil the others.
  local a = HEAD_ARGS + EACH_ARGS * i
  local ok, reply = pcall(refresh, #KEYS / n * i, ARGV[a + ID], tonumber(ARGV[a + WAITER_TTL]))
  replies[i + 1] = ok and reply or type(reply) == 'table' and reply.err or tostring(reply)
end
return replies
