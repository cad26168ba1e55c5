-- queue.lua: the places of those who wait. It is put behind state.lua, in front
-- of serve.lua.
--
-- KEYS   for each name seven, in this order: the lock, its last token, holders,
--        queue, waiters, detail, record
-- ARGV   1 memory of the last token in ms   2 what the channels of inboxes
--        begin with
--
-- Two more companions than in state.lua are a name's own:
--     queue    sorted set: lease ID -> number of the place, ascending
--     waiters  sorted set: lease ID -> end of the place in ms
-- and in detail 'w<lease ID>' -> <WaiterTTL in ms> <mode> <limit> <permits>
-- <MinToken> <once> <clock of the first request in ms> <inbox> <holder as JSON>.
-- A place counts only while it is in all three.
--
-- A message to an inbox is <lease ID> <token>: the lease was handed the lock;
-- with token 0 it is time to look.

-- open returns the state of the name whose keys begin at KEYS[first].
local function open(first)
  local s = {
    key = KEYS[first], fence = KEYS[first + 1], holders = KEYS[first + 2], queue = KEYS[first + 3],
    waiters = KEYS[first + 4], detail = KEYS[first + 5], record = KEYS[first + 6],
    mine = false, used = 0, places = 0,
  }
  s.lock = read(s.key)
  -- Most names have no companions: one look is all that they cost.
  s.busy = redis.call('EXISTS', s.holders, s.queue, s.waiters, s.detail) > 0
  return s
end

-- tell sends a message to who waits. It only speeds waiting up: without the
-- right to publish, all else still counts.
local function tell(inbox, id, token)
  redis.pcall('PUBLISH', ARGV[2] .. inbox, id .. ' ' .. token)
end

-- place returns what is known of a place, or nil.
local function place(s, id)
  local ends = s.places > 0 and redis.call('ZSCORE', s.waiters, id)
  local record = ends and redis.call('HGET', s.detail, 'w' .. id)
  local ttl, mode, limit, permits, min, once, since, inbox, holder =
    string.match(record or '', '^(%d+) (%d) (%d+) (%d+) (%d+) (%d) (%d+) (%x*) (.*)$')
  return ttl and {
    id = id, ends = tonumber(ends), ttl = tonumber(ttl), mode = tonumber(mode), limit = tonumber(limit),
    permits = tonumber(permits), min = min, once = once, since = since, inbox = inbox, holder = holder,
  }
end

-- note records a place that stays where it is, or is a new one at the end.
local function note(s, p)
  keep(p.ends, s.queue, s.waiters, s.detail)
  redis.call('ZADD', s.waiters, num(p.ends), p.id)
  redis.call('HSET', s.detail, 'w' .. p.id, table.concat({
    num(p.ttl), p.mode, num(p.limit), num(p.permits), p.min, p.once, p.since, p.inbox, p.holder }, ' '),
    'seen', num(millis()))
end

-- join gives a place at the end of the queue. INVARIANT I7: numbers only grow.
local function join(s, p)
  local last = redis.call('ZRANGE', s.queue, -1, -1, 'WITHSCORES')[2]
  redis.call('ZADD', s.queue, num(tonumber(last or 0) + 1), p.id)
  s.places = s.places + 1
  note(s, p)
  keep(p.ends, s.queue, s.waiters, s.detail) -- those that note has made
end

-- renew makes a place last at least ttl ms from now.
local function renew(s, p, ttl)
  if millis() + ttl > p.ends then
    p.ends, p.ttl = millis() + ttl, ttl
    note(s, p)
  end
end

-- quit gives a place up, and reports whether there was one.
local function quit(s, id)
  if s.places == 0 or redis.call('ZREM', s.queue, id) == 0 then
    return false
  end
  redis.call('ZREM', s.waiters, id)
  redis.call('HDEL', s.detail, 'w' .. id)
  s.places = s.places - 1
  return true
end

-- sweep deletes the records of all members, or of all places.
local function sweep(s, mark)
  for _, field in ipairs(redis.call('HKEYS', s.detail)) do
    if string.sub(field, 1, 1) == mark then
      redis.call('HDEL', s.detail, field)
    end
  end
end

-- tidy makes the state that of this instant: it ends what has lasted its time,
-- and what lost a part because somebody deleted a key.
local function tidy(s)
  if not s.busy then
    return
  end
  if look(s) then
    sweep(s, 'h')
    forget(s)
  end
  s.places = redis.call('ZCARD', s.queue)
  if s.places ~= redis.call('ZCARD', s.waiters) then
    redis.call('DEL', s.queue, s.waiters)
    sweep(s, 'w')
    s.places = 0
  end
  rewind(s)
  for _, member in ipairs(s.mine and redis.call('ZRANGEBYSCORE', s.holders, '-inf', num(millis())) or {}) do
    leave(s, member, holding(s, member))
  end
  for _, id in ipairs(s.places > 0 and redis.call('ZRANGEBYSCORE', s.waiters, '-inf', num(millis())) or {}) do
    quit(s, id)
  end
  if s.mine and s.lock.left < 0 then
    seal(s) -- somebody took the expiry away
  end
end

-- done deletes what is left of the companions when they hold nothing.
local function done(s)
  if s.busy and not s.mine and s.places == 0 then
    redis.call('DEL', s.holders, s.queue, s.waiters, s.detail)
    s.busy = false
  end
end

-- rank returns the place of a lease ID in the queue, 1 for the head, 0 for none.
local function rank(s, id)
  local n = s.places > 0 and redis.call('ZRANK', s.queue, id)
  return n and n + 1 or 0
end
