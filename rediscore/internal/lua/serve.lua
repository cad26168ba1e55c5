-- serve.lua: decides which request is granted the lock, and when. It follows yield.lua, and
-- precedes the scripts that may hand a lock over.

local EXCLUSIVE = 0

-- fits reports whether a request can be granted together with the live leases. INVARIANT I1. A
-- shared request has no permits and the limit 0.
local function fits(s, r)
  if not s.lock then
    return true
  end
  return s.mine and r.mode ~= EXCLUSIVE and r.limit == s.lock.limit and s.used + r.permits <= r.limit
end

-- drawToken returns the next token as a decimal string, or nil and the reply that refuses the
-- request.
local function drawToken(s, min)
  local last = s.last or redis.pcall('GET', s.fence) or '0'
  if type(last) == 'table' then
    return nil, redis.error_reply(last.err)
  end
  if not string.match(last, '^%d+$') then
    return nil, { -3 }
  end
  -- INVARIANT I2: above all that the last token has reserved, at any clock. Integers are exact
  -- below 2^53, but only '%.0f' writes all their digits.
  local token = math.max(tonumber(last) + TOKEN_RANGE, micros(), tonumber(min) + 1)
  if token >= 9007199254740991 then
    return nil, { -3 }
  end
  return num(token)
end

-- rememberToken writes the last token, after countIn for the leases that it was drawn for.
local function rememberToken(s, token)
  putToken(s.fence, token, s.lock and s.lock.left or 0, ARGV[TOKEN_MEMORY])
end

-- countIn adds a lease that is granted to r until r.ends to the state, before it is written.
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

-- putLeases writes leases that were counted in. free is true if the name was free before.
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

-- grant writes the lease of a request whose token was drawn.
local function grant(s, r)
  local free = not s.lock
  r.ends = millis() + r.ttl
  countIn(s, r, r.token)
  putLeases(s, free, { r })
  note(s, { eventOf('a', r, r.token, '0') })
end

-- GRANT is how many ended leases cost as much work as a grant to a waiter.
local GRANT = 2

-- nextInLine returns the places that leave the queue now, as far as there is room: gone has their
-- lease IDs, heirs has those that are granted the lock, with their tokens, and notices has the
-- messages to send.
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
      gone[#gone + 1] = ids[i] -- without p the place has expired, or a user deleted its record
      if p then
        notices[#notices + 1] = { p.inbox, p.id, token }
      end
    end
    room, look = room - GRANT * #ids, 4 * look
  end
  s.more = s.places > #gone
  return gone, heirs, notices
end

-- serve hands the lock to the first place of the queue, and to the next ones as long as they fit.
-- INVARIANT I7: it skips no place. Each one gets a message, even if its own engine sent this
-- request: an engine takes an inbox without messages for dead. If no token can be drawn, s.failed
-- is the reply.
local function serve(s)
  -- Under an exclusive lease only places whose do-once work is recorded leave the queue.
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

-- settle does what purge does, serves the queue, and reports whether it has finished. If not, the
-- script must do nothing else, and reply MORE.
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

-- lease returns the live lease with this ID, or nil. An exclusive lease is as read returns it, any
-- other as holding does. INVARIANT I4: only the exact lease.
local function lease(s, id)
  if s.lock and s.lock.id == id then
    return s.lock
  end
  return s.mine and holding(s, id) or nil
end

-- lengthen makes a lease last at least ttl ms. It returns the text of the error if the server
-- refuses.
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

-- closed returns 1 if the lease with this name was released and keeps the name closed, else 0.
local function closed(name)
  return string.sub(name, 1, 1) == '-' and 1 or 0
end

-- blocker returns the reply to a request that was not granted, {0, ms left, holder, place, places,
-- us, released} as in acquire.lua, about the lease that expires first.
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
