-- plain_feed.lua: what is not plain of an event that is. It is put behind feed.lua.

-- began is told that value, of a new lease, has become item n.
local function began(history, key, value, n, clock, heard)
  if type(n) ~= 'number' then
    return
  end
  if n % 2 == 0 then
    -- Nobody has reported the end of the lease before, which comes first.
    redis.pcall('RPOP', history)
    local events = lapsed(history, clock)
    if heard then
      publish(key, events)
    end
    events[#events + 1] = #events % 2 == 0 and '' or nil
    redis.pcall('RPUSH', history, unpack(events))
    n = redis.pcall('RPUSH', history, value)
  end
  bound(history, n)
  if heard then
    publish(key, { value })
  end
end

-- over is told that event, of the end of a lease, has become item n.
local function over(history, key, event, n, heard)
  if type(n) ~= 'number' then
    return
  end
  if n % 2 == 1 then -- an engine without history has granted the lease
    n = redis.pcall('RPUSH', history, '')
  end
  bound(history, n)
  if heard then
    publish(key, { event })
  end
end
