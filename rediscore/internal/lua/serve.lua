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
  local last, refusal = s.last
  if not last then
    last, refusal = lastToken(s.fence)
  end
  if refusal then
    return nil, refusal
  end
  -- INVARIANT I2: above all tokens that the last token has reserved, at any clock. Integers are
  -- exact below 2^53, but only '%.0f' writes all their digits.
  local token = math.max(last + TOKEN_RANGE, micros(), tonumber(min) + 1)
  if token >= 9007199254740991 then
    return nil, { -3 }
  end
  return num(token)
end

-- rememberToken writes the last token. The leases with new tokens must have been counted in before.
local function rememberToken(s, token)
  putToken(s.fence, token, s.lock and s.lock.left or 0, ARGV[TOKEN_MEMORY])
end

-- countIn makes r, which is granted the lock until r.ends, a lease of the state. It does not write
-- the lease.
local function countIn(s, r, token)
  s.last, r.token, r.granted, r.left = token, token, num(micros()), r.ends - millis()
  if r.mode == EXCLUSIVE then
    r.proposer, s.lock = '', r
    return
  end
  if not s.lock then
    beginGroup(s, r.id, r.limit)
  end
  s.busy, s.used = true, s.used + r.permits
  s.lock.left = math.max(s.lock.left, r.left)
end

-- putLeases writes leases that were counted in.
local function putLeases(s, all)
  local r = all[1]
  rememberToken(s, s.last)
  if r.mode == EXCLUSIVE then
    redis.call('SET', s.key, exclusive(r.id, num(r.ttl), r.token, r.granted, r.holder), 'PXAT', num(r.ends))
  else
    putShared(s, all)
  end
end

-- grant writes the lease of a request whose token was drawn.
local function grant(s, r)
  r.ends = millis() + r.ttl
  countIn(s, r, r.token)
  putLeases(s, { r })
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
-- INVARIANT I7: it skips no place. Each place that leaves gets a message: an engine regards an inbox
-- without messages as dead. If no token can be drawn, s.failed is the reply.
local function serve(s)
  -- Under an exclusive lease only places whose do-once work is recorded leave the queue.
  if s.lock and not s.lock.group and not s.once then
    return
  end
  if s.places == 0 or vacant(s) > 0 then
    return
  end
  local gone, heirs, notices = nextInLine(s)
  giveUpPlaces(s, gone, heirs) -- first, because it needs no memory; see outlast
  if #heirs > 0 then
    putLeases(s, heirs)
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

-- blocker returns the reply to a request that was not granted and has no place, as in acquire.lua.
-- The reply is about the lease that expires first.
local function blocker(s)
  local h = s.mine and holding(s, redis.call('ZRANGE', s.holders, 0, 0)[1]) or s.lock
  if not h then
    return { 0, vacant(s), '', 0, s.places, 0, 0 }
  end
  if not h.limit then
    meet(s)
  end
  if h == s.lock then
    clamp(s.key, h)
  end
  return { 0, h.left, h.holder or '', 0, s.places, age(h), h.closed and 1 or 0 }
end
