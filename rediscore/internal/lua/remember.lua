-- remember.lua: writes down what happens to a name; see feed.lua. It is put behind
-- state.lua, in front of queue.lua, and is there only in engines that write history.
-- s.ends is the kind of event with which a lease ends, r without it, and s.about what
-- follows after a break.

-- live tells whether somebody has a lease.
local function live(s)
  return s.mine or s.lock ~= nil and s.lock.id ~= nil and string.sub(s.lock.id, 1, 1) ~= '-'
end

-- note writes events down that have just happened, and tells of them.
local heard
local function note(s, events)
  local n = #events > 0 and redis.pcall('RPUSH', s.history, unpack(events))
  if type(n) ~= 'number' then
    return
  end
  if (n % 2 == 1) ~= live(s) then
    n = redis.pcall('RPUSH', s.history, '')
  end
  bound(s.history, n)
  if heard == nil then
    heard = listened()
  end
  if heard then
    publish(s.key, events)
  end
end

-- eventOf returns an event of a lease or a request p: what is its token, or the first
-- half of its lease ID.
local function eventOf(kind, p, what, since)
  return kind .. num(micros()) .. ' ' .. what .. ' ' .. num(p.mode) .. ' ' .. num(p.limit) .. ' ' .. num(p.permits) .. ' ' .. since .. ' ' .. p.holder
end

-- ending returns the event with which a lease ends that is still there.
local function ending(s, kind, h)
  local limit = h ~= s.lock and s.lock.limit or 0
  local mode = h == s.lock and 0 or limit == 0 and 1 or 2
  return eventOf(kind, { mode = mode, limit = limit, permits = h.permits or 0, holder = h.holder }, h.token, h.granted)
end

-- ranOut adds the event of a lease that several could have, and that is over since
-- ends.
local function ranOut(s, events, member, ends, record)
  local token, permits, granted, holder = string.match(record or '', '^%d+ (%d+) (%d+) (%d+) (.*)$')
  if token and string.sub(member, 1, 1) ~= '-' then
    local since = num(granted + micros() - (tonumber(ends or millis()) * 1000))
    events[#events + 1] = ending(s, 'x', { token = token, permits = tonumber(permits), granted = since, holder = holder })
  end
end

-- left returns the events of places that have ended without a lease.
local function left(s, places)
  local events = {}
  for _, p in ipairs(places) do
    if p and not (s.heirs and s.heirs[p.id]) then
      local over = math.max(millis() - p.ends, 0)
      events[#events + 1] = eventOf('w', p, string.sub(p.id, 1, 16), num((p.since + over) * 1000))
    end
  end
  return events
end

-- lapse writes down which leases are over whose end nobody has reported.
local function lapse(s)
  local n = not live(s) and redis.pcall('LLEN', s.history)
  if type(n) == 'number' and n % 2 == 1 then
    note(s, lapsed(s.history, num(micros())))
    if redis.pcall('LLEN', s.history) == n then
      redis.pcall('RPUSH', s.history, '')
    end
  end
end
