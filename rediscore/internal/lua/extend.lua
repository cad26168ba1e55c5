-- extend.lua: lengthens many leases in one call.
--
-- KEYS   for each lease: LOCK, HOLDERS, WAITERS, DETAIL
-- ARGV   for each lease: ID, TTL in ms
-- Reply  for each lease: 1 lasts at least this long from now, 0 the lease is not
--        live, -6 there is more to do first: send it again, or the text of the
--        server's error

local states = {} -- by key: many leases may be of one name
local function open(at)
  local s = states[KEYS[at + LOCK]]
  if not s then
    s = { key = KEYS[at + LOCK], holders = KEYS[at + HOLDERS], waiters = KEYS[at + WAITERS], detail = KEYS[at + DETAIL] }
    s.lock = read(s.key)
    s.unknown = s.lock and (s.lock.unknown or s.lock.group and readDetail(s)) or nil
    if s.lock and s.lock.group and not s.unknown then
      mend(s)
    end
    states[s.key] = s
  end
  return s
end

local function extend(at, id, ttl)
  local s = open(at)
  if s.unknown then
    return s.unknown
  end
  -- INVARIANT I4: only the exact lease, and never a new one.
  if not s.lock then
    return 0
  end
  if s.lock.id == id then
    return lengthenExclusive(s.key, s.lock, ttl) or 1
  end
  if s.more then
    return -6
  end
  local h = s.mine and holding(s, id)
  if not h or h.ends <= millis() then
    return 0
  end
  lengthenShared(s, id, h, tonumber(ttl))
  return 1
end

local replies = {}
for i = 0, #KEYS / EACH_KEYS - 1 do
  -- One that fails must not spoil the others.
  local ok, reply = pcall(extend, EACH_KEYS * i, ARGV[EACH_ARGS * i + ID], ARGV[EACH_ARGS * i + TTL])
  replies[i + 1] = ok and reply or type(reply) == 'table' and reply.err or tostring(reply)
end
for _, s in pairs(states) do
  if s.kept then
    seal(s)
  end
end
return replies
