-- remember.lua: records the events of a name; see feed.lua. It follows state.lua and precedes
-- queue.lua. For engines that record no history its functions do nothing. s.ends is the kind of
-- the event with which a lease ends, and s.about is appended to it by a break.

local function note() end
local eventOf, lapse, ending, ranOut, left = note, note, note, note, note

if writes then
  -- lapsed returns the missing events of a name without a lease: ends of leases without a
  -- request. The expiry of the history shows when the last lease ended. No lease ended before its
  -- first TTL, or after the next exclusive lease began, or after now.
  local function lapsed(history, clock)
    local list, over, shared, events = redis.pcall('LRANGE', history, 0, -1), {}, {}, {}
    local latest = tonumber(clock)
    local ends = latest + 1000 * (redis.pcall('PTTL', history) - HISTORY_MEMORY)
    for i = #list, 1, -1 do
      local item = list[i]
      local ttl, token, granted, holder = string.match(item, '^THIS_LAYOUT %x+ (%d+) (%d+) (%d+) (.*)$')
      local kind, least = '0 0 0', ttl and granted + 1000 * ttl
      if not token then
        granted, token, kind, holder = string.match(item, '^[ah](%d+) (%d+) (%d %d+ %d+) %d+ (.*)$')
        least = granted
      end
      if not token then
        over[string.match(item, '^R%d+ THIS_LAYOUT %x+ %d+ (%d+) ') or string.match(item, '^[rxlbc]%d+ (%d+) ') or ''] = true
        shared[string.match(item, '^d(%d+)$') or ''] = true
      elseif not over[token] then
        over[token] = true
        local at = num(math.min(math.max(ends, least), latest))
        table.insert(events, 1, 'x' .. at .. ' ' .. token .. ' ' .. (shared[token] and '1 0 0' or kind) .. ' ' .. granted .. ' ' .. holder)
      end
      if token and kind == '0 0 0' then
        latest = tonumber(granted)
      end
    end
    return events
  end

  local function live(s)
    return s.mine or s.lock ~= nil and s.lock.id ~= nil and not s.lock.closed
  end

  -- writeDown appends events of leases, and reports whether the server accepted them.
  local function writeDown(s, events)
    local n = redis.pcall('RPUSH', s.history, unpack(events))
    if type(n) ~= 'number' then
      return false
    end
    if (n % 2 == 1) ~= live(s) then
      n = redis.pcall('RPUSH', s.history, '')
    end
    bound(s.history, n, live(s) and redis.call('PTTL', s.key) or 0)
    return true
  end

  -- note records events that have just happened, either of leases or of places, and publishes them.
  local heard
  function note(s, events)
    local places = string.find(events[1] or '', '^[qw]')
    if #events == 0 or places and not jot(s.crowd, events) or not places and not writeDown(s, events) then
      return
    end
    if heard == nil then
      heard = listened()
    end
    if heard then
      publish(s.key, num(micros()), events)
    end
  end

  -- eventOf returns an event of a lease or a place p, which happened at clock (nil for now).
  -- what is the token, or the first half of the lease ID of a place.
  function eventOf(kind, p, what, since, clock)
    return kind .. num(clock or micros()) .. ' ' .. what .. ' ' .. num(p.mode) .. ' ' .. num(p.limit) .. ' ' .. num(p.permits) .. ' ' .. since .. ' ' .. p.holder
  end

  -- ending returns the event of the end of a lease.
  function ending(s, kind, h, clock)
    return eventOf(kind, h, h.token, h.granted, clock) .. (s.about or '')
  end

  -- ranOut returns the events of shared leases and permits that have expired. It must be called
  -- before the caller deletes them.
  function ranOut(s, members, records)
    local ends, events = redis.call('ZMSCORE', s.holders, unpack(members)), {}
    for i, member in ipairs(members) do
      local h = leaseOf(s, member, ends[i], records[i])
      if h and not h.closed then
        events[#events + 1] = ending(s, 'x', h, h.ends * 1000)
      end
    end
    return events
  end

  -- left records that places have ended, without those of heirs.
  function left(s, places, heirs)
    local events = {}
    for _, p in ipairs(places) do
      if p and not (heirs and heirs[p.id]) then
        local over = math.max(millis() - p.ends, 0)
        events[#events + 1] = eventOf('w', p, string.sub(p.id, 1, 16), num((p.since + over) * 1000))
      end
    end
    note(s, events)
  end

  -- lapse records the leases that ended without a request.
  function lapse(s)
    local n = not live(s) and redis.pcall('LLEN', s.history)
    if type(n) == 'number' and n % 2 == 1 then
      note(s, lapsed(s.history, num(micros())))
      if redis.pcall('LLEN', s.history) == n then
        redis.pcall('RPUSH', s.history, '')
      end
    end
  end
end
