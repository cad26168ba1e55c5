-- extend.lua: lengthens many leases in one call.
--
-- KEYS   for each lease four: the lock, holders, waiters, detail
-- ARGV   for each lease: lease ID, TTL in ms
-- Reply  for each lease: 1 lasts at least so long from now, 0 the lease is not
--        live, or the text of the server's error

local function extend(first, id, ttl)
  local s = { key = KEYS[first], holders = KEYS[first + 1], waiters = KEYS[first + 2], detail = KEYS[first + 3] }
  s.lock = read(s.key)
  -- INVARIANT I4: only the exact lease, and never a new one.
  if not s.lock then
    return 0
  end
  if s.lock.id == id then
    return lengthen(s.key, s.lock, ttl) or 1
  end
  if not s.lock.group then
    return 0
  end
  look(s)
  if not s.mine then
    return 0
  end
  rewind(s)
  local h = holding(s, id)
  if not h or h.ends <= millis() then
    return 0
  end
  stretch(s, id, h, tonumber(ttl))
  return 1
end

local replies = {}
for i = 1, #KEYS / 4 do
  -- One that fails must not spoil the others.
  local ok, reply = pcall(extend, 4 * i - 3, ARGV[2 * i - 1], ARGV[2 * i])
  replies[i] = ok and reply or type(reply) == 'table' and reply.err or tostring(reply)
end
return replies
