-- Of layout 1; it is put behind common.lua.
local function request(at)
  return {
    id = ARGV[at + 1], mode = tonumber(ARGV[at + 2]), limit = tonumber(ARGV[at + 3]),
    permits = tonumber(ARGV[at + 4]), ttl = tonumber(ARGV[at + 5]), min = ARGV[at + 6],
    holder = ARGV[at + 7],
  }
end
local function repeated(s, r)
  local h = lease(s, r.id)
  if not h then
    return nil
  end
  local err = lengthen(s, r.id, h, r.ttl)
  if err then
    return redis.error_reply(err)
  end
  return { 1, tonumber(h.token) }
end
local function tooFar(r)
  return tonumber(r.min) > micros() + tonumber(ARGV[3])
end
local function refused(s, r)
  if s.failed then
    return s.failed
  end
  local kind = s.lock and s.lock.limit
  if not kind and s.places > 0 then
    local head = place(s, redis.call('ZRANGE', s.queue, 0, 0)[1])
    kind = head and head.limit
  end
  if kind and kind ~= r.limit then
    return { -4, kind }
  end
  if s.places > 0 or not fits(s, r) then
    return blocker(s, 0)
  end
  if tooFar(r) then
    return { -2 }
  end
  local failed
  r.token, failed = drawToken(s, r.min)
  return failed
end
if redis.call('EXISTS', KEYS[8]) == 1 then
  return { -1 }
end
local s = open(0)
if s.lock and s.lock.err then
  return redis.error_reply(s.lock.err)
end
local r = request(6)
if not settle(s) then
  return { MORE }
end
local reply = repeated(s, r)
if reply then
  return reply
end
local record = ARGV[5] == '1' and redis.call('GET', s.record)
if record then
  giveUpPlaces(s, { r.id })
  if not settle(s) then
    return { MORE }
  end
  return { 2, string.sub(record, 33) }
end
reply = refused(s, r)
if reply and reply[1] == 0 and ARGV[4] ~= '0' then
  local p = place(s, r.id)
  if p then
    refreshPlace(s, p, tonumber(ARGV[4]), ARGV[6])
  elseif tooFar(r) then
    return { -2 }
  else
    r.ttl = tonumber(ARGV[4])
    r.ends, r.since, r.once, r.inbox = millis() + r.ttl, num(millis()), ARGV[5], ARGV[6]
    givePlace(s, r)
  end
  reply[4] = rank(s, r.id)
end
if reply then
  return reply
end
grant(s, r, r.token, r.ttl)
return { 1, tonumber(r.token) }
