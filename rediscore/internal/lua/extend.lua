-- extend.lua: lengthens many leases in one call.
--
-- KEYS   for each lease four: the lock, holders, waiters, detail
-- ARGV   for each lease: lease ID, TTL in ms
-- Reply  for each lease: 1 lasts at least so long from now, 0 the lease is not
--        live, -6 there is more to do first: send it again, or the text of the
--        server's error

local states = {} -- by key: many leases may be of one name
local function open(first)
  local s = states[KEYS[first]]
  if not s then
    s = { key = KEYS[first], holders = KEYS[first + 1], waiters = KEYS[first + 2], detail = KEYS[first + 3] }
    s.lock = read(s.key)
    if s.lock and s.lock.group then
      look(s)
      mend(s)
    end
    states[s.key] = s
  end
  return s
end

local function extend(first, id, ttl)
  local s = open(first)
  -- INVARIANT I4: only the exact lease, and never a new one.
  if not s.lock then
    return 0
  end
  if s.lock.id == id then
    return lengthen(s.key, s.lock, ttl) or 1
  end
  if s.more then
    return -6
  end
  local h = s.mine and holding(s, id)
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
for _, s in pairs(states) do
  if s.kept then
    seal(s)
  end
end
return replies
