-- queue.lua: the places of waiters. It follows remember.lua and precedes yield.lua.
--
-- KEYS   for each name: LOCK, FENCE with its last token, HOLDERS, QUEUE, DETAIL, RECORD
-- ARGV   TOKEN_MEMORY of the last token in ms; INBOXES the first part of the channels of inboxes;
--        FEED as in feed.lua; FOREIGN as in yield.lua
--
-- A name with waiters has one companion more than in state.lua:
--     queue    sorted set: lease ID -> number of the place, ascending
-- and in detail the fields
--     last     the greatest number of a place
--     lasts    the end in ms of a place up to which the expiry of these keys suffices
--     due      an instant in ms before which no place expires; it exists if a place does
--     once     1 if there ever was a place for work that is done once
--     w<lease ID>  <end in ms> <WaiterTTL in ms> <mode> <limit> <permits> <MinToken> <once>
--              <clock of the first request in ms> <inbox> <holder as JSON>
-- A place counts only while it is in queue and in detail. An expired place is given up at the head
-- of the queue, and wherever mend finds it.
--
-- A message to an inbox is <lease ID> <token>: the lease was granted with this token. With token
-- 0 the waiter should refresh its place now; with 0 <ms>, after these ms.

-- open returns the state of the name whose keys follow KEYS[at]. value is the value of the lock's
-- key if the caller knows it.
local function open(at, value)
  local s = {
    key = KEYS[at + LOCK], fence = KEYS[at + FENCE], holders = KEYS[at + HOLDERS], queue = KEYS[at + QUEUE],
    detail = KEYS[at + DETAIL], record = KEYS[at + RECORD],
    mine = false, used = 0, places = 0, number = 0, lasts = 0,
  }
  if writes then
    s.history, s.crowd = s.detail .. HISTORY_SUFFIX, s.detail .. CROWD_SUFFIX
  end
  s.lock = read(s.key, value)
  -- Most names have no companions, and need no further command.
  s.busy = redis.call('EXISTS', s.holders, s.queue, s.detail) > 0
  s.unknown = s.lock and s.lock.unknown or s.busy and readDetail(s) or nil
  s.err = s.lock and s.lock.err or s.unknown
  return s
end

-- tell sends a message to a waiter. It only shortens the wait: without the right to publish,
-- everything else still works.
local function tell(inbox, id, token)
  redis.pcall('PUBLISH', ARGV[INBOXES] .. inbox, id .. ' ' .. token)
end

-- places returns the records of ids, which are in the queue, with false for a missing one. The
-- field live is true if the place has not expired.
local function places(s, ids)
  local all = {}
  for i, record in ipairs(#ids > 0 and redis.call('HMGET', s.detail, unpack(fields('w', ids))) or {}) do
    local ends, ttl, mode, limit, permits, min, once, since, inbox, holder =
      string.match(record or '', '^(%d+) (%d+) (%d) (%d+) (%d+) (%d+) (%d) (%d+) (%x*) (.*)$')
    all[i] = ends and {
      id = ids[i], live = tonumber(ends) > millis(), ends = tonumber(ends), ttl = tonumber(ttl), mode = tonumber(mode), limit = tonumber(limit),
      permits = tonumber(permits), min = min, once = once, since = since, inbox = inbox, holder = holder,
    } or false
  end
  return all
end

-- rank returns the position of a lease ID in the queue, 1 for the head, 0 for none.
local function rank(s, id)
  local n = s.places > 0 and redis.call('ZRANK', s.queue, id)
  return n and n + 1 or 0
end

-- place returns the record of a live place, or nil.
local function place(s, id)
  local p = rank(s, id) > 0 and places(s, { id })[1]
  return p and p.live and p or nil
end

-- head returns the first live place, or nil.
local function head(s)
  for from = 0, math.min(s.places, ROOM) - 1, 16 do
    for _, p in ipairs(places(s, redis.call('ZRANGE', s.queue, from, from + 15))) do
      if p and p.live then
        return p
      end
    end
  end
  return nil
end

-- wake sends the first live place a message: '0', or '0 <ms>'.
local function wake(s, text)
  local p = head(s)
  if p then
    tell(p.inbox, p.id, text)
  end
end

-- restOf returns what follows the end and the TTL in the record of a place.
local function restOf(p)
  return table.concat({ '', p.mode, num(p.limit), num(p.permits), p.min, p.once, p.since, p.inbox, p.holder }, ' ')
end

-- writePlaces writes the records of places, and more fields of detail. It reports whether the keys
-- of places expire before one of them.
local function writePlaces(s, all, ...)
  local last, written = 0, { 'seen', num(millis()), ... }
  for _, p in ipairs(all) do
    last, s.due = math.max(last, p.ends), math.min(s.due or p.ends, p.ends)
    written[#written + 1], written[#written + 2] = 'w' .. p.id, num(p.ends) .. ' ' .. num(p.ttl) .. p.rest
  end
  local short = last > s.lasts
  s.lasts = short and last + SPARE or s.lasts
  redis.call('HSET', s.detail, 'lasts', num(s.lasts), 'due', num(s.due), unpack(written))
  return short
end

-- givePlace adds a place at the end of the queue. INVARIANT I7: numbers only grow.
local function givePlace(s, p)
  if s.places == 0 then
    s.lasts = 0 -- the keys do not exist yet
  end
  s.number = num(math.max(micros(), s.number + 1))
  p.rest = restOf(p)
  local short = writePlaces(s, { p }, 'layout', 'THIS_LAYOUT', 'last', s.number)
  if p.once == '1' then
    redis.call('HSET', s.detail, 'once', '1')
  end
  s.places = s.places + redis.call('ZADD', s.queue, s.number, p.id)
  if short then
    outlast(s.lasts, s.queue, s.detail) -- now that they exist
  end
  note(s, { eventOf('q', p, string.sub(p.id, 1, 16), '0') })
end

-- refreshPlaces makes each place last at least p.asked ms from now.
local function refreshPlaces(s, all)
  local changed, now = {}, millis()
  for _, p in ipairs(all) do
    if now + p.asked > p.ends then
      p.ends, p.ttl, p.changed = now + p.asked, p.asked, true
    end
    changed[#changed + 1] = p.changed and p or nil
  end
  if #changed > 0 then
    redis.call('HDEL', s.detail, '') -- needs no memory; see outlast
    if writePlaces(s, changed) then
      outlast(s.lasts, s.queue, s.detail)
    end
  end
end

-- giveUpPlaces deletes places. The places of heirs leave because they are granted the lock.
function giveUpPlaces(s, ids, heirs)
  local there = writes and s.places > 0 and places(s, ids) or {}
  local n = s.places > 0 and #ids > 0 and redis.call('ZREM', s.queue, unpack(ids)) or 0
  if n > 0 then
    s.places = s.places - n
    local gone = fields('w', ids)
    if s.places == 0 then
      s.due, gone[#gone + 1] = nil, 'due'
    end
    redis.call('HDEL', s.detail, unpack(gone))
    left(s, there, heirs)
  end
end

-- expire ends the leases and places of a name that have expired, and leases and places whose keys a
-- user has deleted. If it sets s.more, some remain.
local function expire(s)
  if not s.busy then
    return
  end
  if not s.whole then -- a user deleted detail
    redis.call('UNLINK', s.holders, s.queue)
    s.busy = false
    return
  end
  if s.over then
    endGroup(s)
  end
  s.places = redis.call('ZCARD', s.queue)
  if s.over or s.places == 0 and s.due then -- the group has ended, or a user deleted the queue
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
  if s.mine and s.lock.left < 0 then
    seal(s) -- a user removed the expiry
  end
end

-- purge does what expire does, and then records the leases that ended without a request.
local function purge(s)
  expire(s)
  if not s.more then
    lapse(s)
  end
end

-- sweep deletes the companions if there are no leases and places in them.
local function sweep(s)
  if s.busy and not s.mine and s.places == 0 then
    redis.call('UNLINK', s.holders, s.queue, s.detail)
    s.busy = false
  end
end
