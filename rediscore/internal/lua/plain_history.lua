-- plain_history.lua: records the history of plain requests. It follows feed.lua.

local recorded
if writes then
  local heard = listened()

  -- recorded appends an item to the history of the name whose keys follow KEYS[k]. odd is the
  -- remainder of the new count by 2: 1 if the lease begins, 0 if it ends. With another count the
  -- end of an earlier lease is missing, or a grant by an engine without history. Then recorded
  -- changes nothing and returns false, and the full script records what is missing; see lapse in
  -- remember.lua. late is true if the history may expire too early for a lease that has left ms.
  function recorded(k, item, clock, odd, late, left)
    local history = KEYS[k + DETAIL] .. HISTORY_SUFFIX
    local n = redis.pcall('RPUSH', history, item)
    if type(n) ~= 'number' then
      return true
    elseif n % 2 ~= odd then
      redis.pcall('RPOP', history)
      return false
    elseif late or n == 1 or n > MOST_ITEMS then
      bound(history, n, left)
    end
    if heard then
      publish(KEYS[k + LOCK], clock, { item })
    end
    return true
  end
end
