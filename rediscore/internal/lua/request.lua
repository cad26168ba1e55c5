-- request.lua: what acquire.lua and acquire_all.lua share. It follows serve.lua.
--
-- ARGV   LEAD how far MinToken may be ahead of the clock, in us; for each request: ID of the lease;
--        MODE; LIMIT; PERMITS; TTL in ms; MIN_TOKEN; HOLDER as JSON

-- request returns the request whose arguments follow ARGV[at].
local function request(at)
  return {
    id = ARGV[at + ID], mode = tonumber(ARGV[at + MODE]), limit = tonumber(ARGV[at + LIMIT]),
    permits = tonumber(ARGV[at + PERMITS]), ttl = tonumber(ARGV[at + TTL]), min = ARGV[at + MIN_TOKEN],
    holder = ARGV[at + HOLDER],
  }
end

-- repeated returns the reply to a request that was granted before, else nil. INVARIANT I6: with
-- the first token.
local function repeated(s, r)
  local h = lease(s, r.id)
  if not h then
    return nil
  end
  local err = lengthen(s, h, r.ttl)
  lengthened(s)
  if err then
    return redis.error_reply(err)
  end
  return { 1, tonumber(h.token) }
end

local function tooFar(r)
  return tonumber(r.min) > micros() + tonumber(ARGV[LEAD])
end

-- refused returns the reply to a request that cannot be granted. Otherwise it draws the token.
local function refused(s, r)
  if s.failed then
    return s.failed
  end
  -- INVARIANT I12: one kind of leases and places at a time.
  local kind = s.lock and s.lock.limit or (head(s) or {}).limit
  if kind and kind ~= r.limit then
    return { -4, kind }
  end
  -- INVARIANT I7: no request overtakes a place.
  if s.places > 0 or not fits(s, r) then
    return blocker(s)
  end
  if tooFar(r) then
    return { -2 }
  end
  local failed
  r.token, failed = drawToken(s, r.min)
  return failed
end
