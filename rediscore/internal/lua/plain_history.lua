-- plain_history.lua: records the history of plain requests. It follows feed.lua.

local began, ended
if writes then
  local heard = listened()

  -- began records the grant of the lease with this value. It returns false if the end of an
  -- earlier lease is missing, and then changes nothing; see lapse in remember.lua.
  function began(key, detail, value, clock, ttl, late)
    local history = detail .. HISTORY_SUFFIX
    local n = redis.pcall('RPUSH', history, value)
    if type(n) ~= 'number' then
      return true
    elseif n % 2 == 0 then
      redis.pcall('RPOP', history)
      return false
    elseif late or n == 1 or n > MOST_ITEMS then
      bound(history, n, tonumber(ttl))
    end
    if heard then
      publish(key, clock, { value })
    end
    return true
  end

  -- ended records the release of the lease with this value. It returns false if the grant is
  -- missing, because an engine without history made it, and then changes nothing.
  function ended(key, detail, value, clock)
    local history, event = detail .. HISTORY_SUFFIX, 'R' .. clock .. ' ' .. value
    local n = redis.pcall('RPUSH', history, event)
    if type(n) ~= 'number' then
      return true
    elseif n % 2 == 1 then
      redis.pcall('RPOP', history)
      return false
    elseif not string.find(value, ' ' .. string.sub(clock, 1, HOUR), 36, true) then
      bound(history, n, 0)
    end
    if heard then
      publish(key, clock, { event })
    end
    return true
  end
end
