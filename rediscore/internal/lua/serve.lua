-- serve.lua: which request is granted the lock, and when. It follows queue.lua, and precedes
-- the scripts that may hand a lock over.

local EXCLUSIVE = 0

-- fits tells whether a request can be granted beside the live leases.
-- INVARIANT I1. A shared request has no permits and the limit 0.
local function fits(s, r)
  if not s.lock then
    return true
  end
  return s.mine and r.mode ~= EXCLUSIVE and r.limit == s.lock.limit and s.used + r.permits <= r.limit
end

-- drawToken returns the next token as a decimal string, or nil and the reply
-- that says why there is none.
local function drawToken(s, min)
  local last = s.last or redis.pcall('GET', s.fence) or '0'
  if type(last) == 'table' then
    return nil, redis.error_reply(last.err)
  end
  if not string.match(last, '^%d+$') then
    return nil, { -3 }
  end
  -- INVARIANT I2: above all that the last token has reserved, whatever the clock does. Integers
  -- are exact below 2^53, but only '%.0f' writes all their digits.
  local token = math.max(tonumber(last) + TOKEN_RANGE, micros(), tonumber(min) + 1)
  if token >= 9007199254740991 then
    return nil, { -3 }
  end
  return num(token)
end

-- rememberToken writes the last token, once the leases that it was drawn for are
-- counted in.
local function rememberToken(s, token)
  putToken(s.fence, token, s.lock and s.lock.left or 0, ARGV[TOKEN_MEMORY])
end

-- countIn counts a lease that is granted to r, until r.ends, before it is recorded.
local function countIn(s, r, token)
  s.last, r.member, r.token, r.granted = token, r.id, token, num(micros())
  if r.mode == EXCLUSIVE then
    s.lock = { left = r.ends - millis(), id = r.id, proposer = '', token = token, ttl = r.ttl, granted = r.granted, holder = r.holder, limit = 0 }
    return
  end
  if not s.lock then
    beginGroup(s, r.id, r.limit)
  end
  s.busy, s.used = true, s.used + r.permits
  s.lock.left = math.max(s.lock.left, r.ends - millis())
end

-- putLeases records leases that were counted in, of a name that was free, or not.
local function putLeases(s, free, all)
  local r = all[1]
  rememberToken(s, s.last)
  if r.mode == EXCLUSIVE then
    redis.call('SET', s.key, exclusive(r.id, num(r.ttl), r.token, r.granted, r.holder), 'PXAT', num(r.ends))
  else
    if free then
      writeGroup(s, num(r.ends))
    end
    putShared(s, all)
  end
end

-- grant records the lease of a request whose token was drawn.
local function grant(s, r)
  local free = not s.lock
  r.ends = millis() + r.ttl
  countIn(s, r, r.token)
  putLeases(s, free, { r })
  note(s, { eventOf('a', r, r.token, '0') })
end

-- Granting the lock to a waiter is as much work as ending this many leases.
local GRANT = 2

-- nextInLine returns the places that leave the queue now, as far as there is room: gone are
-- their lease IDs, heirs those of them that are granted the lock, with their tokens, and
-- notices the messages to send.
local function nextInLine(s)
  local gone, heirs, notices = {}, {}, {}
  local look, recorded = 1
  while s.places > #gone and room > 0 do
    local ids = redis.call('ZRANGE', s.queue, #gone, #gone + math.min(look, math.ceil(room / GRANT)) - 1)
    for i, p in ipairs(places(s, ids)) do
      local token = '0'
      p = p and p.live and p
      if p and p.once == '1' and recorded == nil then
        recorded = redis.call('EXISTS', s.record) == 1
      end
      if p and not (p.once == '1' and recorded) then
        if not fits(s, p) then
          return gone, heirs, notices
        end
        token, s.failed = drawToken(s, p.min)
        if not token then
          return gone, heirs, notices
        end
        countIn(s, p, token)
        heirs[#heirs + 1], heirs[p.id] = p, true
      end
      gone[#gone + 1] = ids[i] -- without p, it has expired, or a user deleted its record
      if p then
        notices[#notices + 1] = { p.inbox, p.id, token }
      end
    end
    room, look = room - GRANT * #ids, 4 * look
  end
  s.more = s.places > #gone
  return gone, heirs, notices
end

-- serve hands the lock to the first place of the queue, and to the next, as long as they fit.
-- INVARIANT I7: none is skipped. Each gets a message, even if its own engine sent this
-- request: an engine takes an inbox without messages for dead. If no token can be drawn,
-- s.failed says why.
local function serve(s)
  -- One who has the lock alone keeps all waiting, but those whose work is done.
  if s.lock and not s.lock.group and not s.once then
    return
  end
  if s.places == 0 or vacant(s) > 0 then
    return
  end
  local free = not s.lock
  local gone, heirs, notices = nextInLine(s)
  giveUpPlaces(s, gone, heirs) -- first, because it needs no memory; see outlast
  if #heirs > 0 then
    putLeases(s, free, heirs)
  end
  local events = {}
  for i, p in ipairs(heirs) do
    events[i] = eventOf('h', p, p.token, p.since .. '000')
  end
  note(s, events)
  for _, n in ipairs(notices) do
    tell(n[1], n[2], n[3])
  end
end

-- settle is purge, and hands the lock over if that made room. It reports whether it has
-- finished. If not, the script must do nothing else, and reply MORE.
local MORE = -6
local function settle(s)
  purge(s)
  if not s.more then
    serve(s)
  end
  if s.more then
    return false
  end
  sweep(s)
  return true
end

-- lease returns the live lease of a lease ID, or nil: what read found, or what
-- holding returns. INVARIANT I4: only the exact lease.
local function lease(s, id)
  if s.lock and s.lock.id == id then
    return s.lock
  end
  return s.mine and holding(s, id) or nil
end

-- lengthen makes a lease last at least ttl ms, and returns an error's text if
-- the server refuses.
local function lengthen(s, id, h, ttl)
  local err = false
  if h == s.lock then
    err = lengthenExclusive(s.key, h, num(ttl))
  else
    lengthenShared(s, id, h, ttl)
    seal(s)
  end
  keepToken(s.fence, h.token, h.left or h.ends - millis(), ARGV[TOKEN_MEMORY])
  outlive(s)
  return err
end

-- closed tells whether what is in the way under this name was released.
local function closed(name)
  return string.sub(name, 1, 1) == '-' and 1 or 0
end

-- blocker returns the reply to a request that was not granted: {0, ms left of the
-- lease in the way, its holder, place, places, us since its grant, released}.
local function blocker(s, rank)
  if s.mine then
    local first = redis.call('ZRANGE', s.holders, 0, 0)[1]
    local h = holding(s, first)
    if h then
      return { 0, h.ends - millis(), h.holder, rank, s.places, age(h), closed(first) }
    end
  end
  if not s.lock then
    return { 0, vacant(s), '', rank, s.places, 0, 0 }
  end
  if not s.lock.id and not s.lock.group then
    meet(s)
  end
  clamp(s.key, s.lock)
  return { 0, s.lock.left, s.lock.holder or '', rank, s.places, age(s.lock), closed(s.lock.id or '') }
end
