-- queue.lua: the places of those who wait. It is put behind state.lua, in front
-- of serve.lua.
--
-- KEYS   for each name: LOCK, FENCE, its last token, HOLDERS, QUEUE, WAITERS,
--        DETAIL, RECORD
-- ARGV   TOKEN_MEMORY of the last token in ms; INBOXES what the channels of
--        inboxes begin with
--
-- Two more companions than in state.lua are a name's own:
--     queue    sorted set: lease ID -> number of the place, ascending
--     waiters  sorted set: lease ID -> end of the place in ms
-- and in detail 'last' the greatest number of a place, 'lasts' the end in ms of the
-- last place for which these keys last long enough, 'once' if there ever was a
-- place for work that is done once, and 'w<lease ID>' -> <WaiterTTL in ms> <mode> <limit> <permits>
-- <MinToken> <once> <clock of the first request in ms> <inbox> <holder as JSON>.
-- A place counts only while it is in all three.
--
-- A message to an inbox is <lease ID> <token>: the lease was handed the lock;
-- with token 0 it is time to look, with 0 <ms> that it is time when these are over.

-- open returns the state of the name whose keys are behind KEYS[at], and whose lock
-- holds value, if that is known.
local function open(at, value)
  local s = {
    key = KEYS[at + LOCK], fence = KEYS[at + FENCE], holders = KEYS[at + HOLDERS], queue = KEYS[at + QUEUE],
    waiters = KEYS[at + WAITERS], detail = KEYS[at + DETAIL], record = KEYS[at + RECORD],
    mine = false, used = 0, places = 0, number = 0, lasts = 0,
  }
  if writes then
    s.history, s.crowd = s.detail .. HISTORY_SUFFIX, s.detail .. CROWD_SUFFIX
  end
  s.lock = read(s.key, value)
  -- Most names have no companions: one look is all that they cost.
  s.busy = redis.call('EXISTS', s.holders, s.queue, s.waiters, s.detail) > 0
  s.unknown = s.lock and s.lock.unknown or s.busy and readDetail(s) or nil
  s.err = s.lock and s.lock.err or s.unknown
  return s
end

-- tell sends a message to a waiter. It only speeds waiting up: without the
-- right to publish, all else still counts.
local function tell(inbox, id, token)
  redis.pcall('PUBLISH', ARGV[INBOXES] .. inbox, id .. ' ' .. token)
end

-- readPlace returns what a record says of the place that ends at ends, or nil.
local function readPlace(id, ends, record)
  local ttl, mode, limit, permits, min, once, since, inbox, holder =
    string.match(ends and record or '', '^(%d+) (%d) (%d+) (%d+) (%d+) (%d) (%d+) (%x*) (.*)$')
  return ttl and {
    id = id, ends = tonumber(ends), ttl = tonumber(ttl), mode = tonumber(mode), limit = tonumber(limit),
    permits = tonumber(permits), min = min, once = once, since = since, inbox = inbox, holder = holder,
  }
end

-- place returns what is known of a place, or nil.
local function place(s, id)
  local ends = s.places > 0 and redis.call('ZSCORE', s.waiters, id)
  return ends and readPlace(id, ends, redis.call('HGET', s.detail, 'w' .. id))
end

-- places returns what is known of each of ids; false for none.
local function places(s, ids)
  local all = {}
  if #ids > 0 then
    local ends, records = redis.call('ZMSCORE', s.waiters, unpack(ids)), redis.call('HMGET', s.detail, unpack(fields('w', ids)))
    for i, id in ipairs(ids) do
      all[i] = readPlace(id, ends[i], records[i]) or false
    end
  end
  return all
end

-- keepPlaces makes the companions of places last as long as one that ends at
-- ends.
local function keepPlaces(s, ends)
  if ends > s.lasts then
    s.lasts = ends + SPARE
    outlast(s.lasts, s.queue, s.waiters, s.detail)
  elseif s.saved then
    return
  else
    redis.call('HDEL', s.detail, '') -- needs no memory; see outlast
  end
  redis.call('HSET', s.detail, 'seen', num(millis()), 'lasts', num(s.lasts))
  s.saved = true
end

-- writePlace writes the record of a place, and more fields.
local function writePlace(s, p, ...)
  redis.call('HSET', s.detail, 'w' .. p.id, table.concat({
    num(p.ttl), p.mode, num(p.limit), num(p.permits), p.min, p.once, p.since, p.inbox, p.holder }, ' '), ...)
end

-- givePlace gives a place at the end of the queue. INVARIANT I7: numbers only
-- grow.
local function givePlace(s, p)
  if s.places == 0 then
    s.lasts = 0 -- the keys are made now
  end
  s.number = num(math.max(micros(), s.number + 1))
  writePlace(s, p, 'layout', 'THIS_LAYOUT', 'last', s.number)
  if p.once == '1' then
    redis.call('HSET', s.detail, 'once', '1')
  end
  redis.call('ZADD', s.queue, s.number, p.id)
  s.places = s.places + 1
  redis.call('ZADD', s.waiters, num(p.ends), p.id)
  keepPlaces(s, p.ends) -- now that they are there
  note(s, { eventOf('q', p, string.sub(p.id, 1, 16), '0') })
end

-- refreshPlace makes a place last at least ttl ms from now, and sends its
-- messages to the inbox that asked for it last.
local function refreshPlace(s, p, ttl, inbox)
  local ends = millis() + ttl
  if ends > p.ends then
    p.ends = ends
    keepPlaces(s, ends)
    redis.call('ZADD', s.waiters, num(ends), p.id)
  else
    ttl = p.ttl
  end
  if p.ttl ~= ttl or p.inbox ~= inbox then
    p.ttl, p.inbox = ttl, inbox
    writePlace(s, p)
  end
end

-- giveUpPlaces deletes places. Those of heirs end because they are granted the lock.
local function giveUpPlaces(s, ids, heirs)
  local there = writes and s.places > 0 and places(s, ids) or {}
  local n = s.places > 0 and #ids > 0 and redis.call('ZREM', s.queue, unpack(ids)) or 0
  if n > 0 then
    redis.call('ZREM', s.waiters, unpack(ids))
    redis.call('HDEL', s.detail, unpack(fields('w', ids)))
    s.places = s.places - n
    left(s, there, heirs)
  end
end

-- expire ends the leases and places of a name that have expired, and those that lost a
-- part because a user deleted a key. If s.more is set, it is not done yet.
local function expire(s)
  if not s.busy then
    return
  end
  if not s.whole then -- a user deleted detail
    redis.call('UNLINK', s.holders, s.queue, s.waiters)
    s.busy = false
    return
  end
  local spoilt = s.over
  if spoilt then
    endGroup(s)
  end
  s.places = redis.call('ZCARD', s.queue)
  if s.places ~= redis.call('ZCARD', s.waiters) then
    redis.call('UNLINK', s.queue, s.waiters)
    s.places, spoilt = 0, true
  end
  if spoilt then
    s.mend = '0 ' .. (string.match(s.mend or '', ' (%d+)$') or '0') -- from the beginning
  end
  mend(s)
  if s.more then
    return
  end
  local over = s.mine and take(s, redis.call('ZRANGEBYSCORE', s.holders, '-inf', num(millis()), 'LIMIT', 0, room)) or {}
  if #over > 0 then
    local permits, records = 0, redis.call('HMGET', s.detail, unpack(fields('h', over)))
    for _, record in ipairs(records) do
      permits = permits + tonumber(string.match(record or '', '^%d+ %d+ (%d+) ') or 0)
    end
    local events = ranOut(s, over, records)
    endShared(s, over, permits)
    note(s, events)
  end
  giveUpPlaces(s, s.places > 0 and take(s, redis.call('ZRANGEBYSCORE', s.waiters, '-inf', num(millis()), 'LIMIT', 0, room)) or {})
  if s.mine and s.lock.left < 0 then
    seal(s) -- a user took the expiry away
  end
end

-- purge brings the state of a name to this instant; see expire.
local function purge(s)
  expire(s)
  if not s.more then
    lapse(s)
  end
end

-- sweep deletes what is left of the companions when they hold nothing.
local function sweep(s)
  if s.busy and not s.mine and s.places == 0 then
    redis.call('UNLINK', s.holders, s.queue, s.waiters, s.detail)
    s.busy = false
  end
end

-- rank returns the place of a lease ID in the queue, 1 for the head, 0 for none.
local function rank(s, id)
  local n = s.places > 0 and redis.call('ZRANK', s.queue, id)
  return n and n + 1 or 0
end
