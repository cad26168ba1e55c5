-- serve.lua: who is granted the lock, and when. It is put behind queue.lua, in
-- front of the scripts that may hand a lock over.

local EXCLUSIVE = 0

-- fits tells whether a request can be granted beside the live leases.
-- INVARIANT I1. A shared request has no permits and the limit 0.
local function fits(s, r)
  if not s.lock then
    return true
  end
  return s.mine and r.mode ~= EXCLUSIVE and r.limit == s.lock.limit and s.used + r.permits <= r.limit
end

-- draw returns the next token as a decimal string, or nil and the reply that
-- says why there is none.
local function draw(s, min)
  local last = s.last or redis.pcall('GET', s.fence) or '0'
  if type(last) == 'table' then
    return nil, redis.error_reply(last.err)
  end
  if not string.match(last, '^%d+$') then
    return nil, { -3 }
  end
  -- INVARIANT I2: above every earlier token, whatever the clock does. Integers
  -- are exact below 2^53, but only '%.0f' writes all their digits.
  local token = math.max(tonumber(last) + 1, micros(), tonumber(min) + 1)
  if token >= 9007199254740991 then
    return nil, { -3 }
  end
  return num(token)
end

-- grant records a lease that ends at ends, or ttl ms from now.
local function grant(s, r, token, ttl, ends)
  -- INVARIANT I11: counted from the token, so that the memory does not shrink
  -- while the token leads the clock.
  redis.call('SET', s.fence, token, 'PXAT', num(math.floor(tonumber(token) / 1000) + tonumber(ARGV[1])))
  s.last = token
  if r.mode == EXCLUSIVE then
    local value = r.id .. ' ' .. token .. ' ' .. num(ttl) .. ' ' .. r.holder
    if ends then
      redis.call('SET', s.key, value, 'PXAT', num(ends))
    else
      redis.call('SET', s.key, value, 'PX', num(ttl))
    end
    s.lock = { left = ends and ends - millis() or ttl, id = r.id, token = token, ttl = ttl, holder = r.holder, limit = 0 }
    return
  end
  ends = ends or millis() + ttl
  if not s.lock then
    found(s, r.id, r.limit, ends)
  end
  s.busy, s.used = true, s.used + r.permits
  enter(s, r.id, { ends = ends, ttl = ttl, token = token, permits = r.permits, holder = r.holder })
end

-- serve hands the lock to the first of the queue, and to the next, as long as
-- they fit. INVARIANT I7: nobody is skipped. Each is told, also who sent this
-- request: an inbox that hears nothing is taken for dead. If no token can be
-- drawn, s.failed says why.
local function serve(s)
  while s.places > 0 do
    local id = redis.call('ZRANGE', s.queue, 0, 0)[1]
    local p = place(s, id)
    if not p then
      quit(s, id) -- somebody deleted its record
    elseif p.once == '1' and redis.call('EXISTS', s.record) == 1 then
      quit(s, id)
      tell(p.inbox, id, '0')
    elseif not fits(s, p) then
      return
    else
      local token, failed = draw(s, p.min)
      if not token then
        s.failed = failed
        return
      end
      quit(s, id) -- first, because it needs no memory; see keep
      grant(s, p, token, p.ttl, p.ends)
      tell(p.inbox, id, token)
    end
  end
end

-- settle is tidy, and hands the lock over if that made room.
local function settle(s)
  tidy(s)
  serve(s)
  done(s)
end

-- lease returns the live lease of a lease ID, or nil: what read found, or what
-- holding returns. INVARIANT I4: only the exact lease.
local function lease(s, id)
  if s.lock and s.lock.id == id then
    return s.lock
  end
  return s.mine and holding(s, id) or nil
end

-- prolong makes a lease last at least ttl ms, and returns an error's text if
-- the server refuses.
local function prolong(s, id, h, ttl)
  if h == s.lock then
    return lengthen(s.key, h, num(ttl))
  end
  stretch(s, id, h, ttl)
  return false
end

-- way returns the reply to a request that was not granted: {0, ms left of the
-- lease in the way, its holder, place}.
local function way(s, rank)
  if s.mine then
    local first = redis.call('ZRANGE', s.holders, 0, 0)[1]
    local h = holding(s, first)
    if h then
      return { 0, h.ends - millis(), h.holder, rank }
    end
  end
  if not s.lock then
    return { 0, 0, '', rank }
  end
  clamp(s.key, s.lock)
  return { 0, s.lock.left, s.lock.holder or '', rank }
end
