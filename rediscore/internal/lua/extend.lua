-- extend.lua: lengthens many leases in one call. It follows state.lua.
--
-- KEYS   for each name: LOCK, FENCE, HOLDERS, QUEUE, DETAIL
-- ARGV   TOKEN_MEMORY of the last token in ms; FEED as in feed.lua; for each lease: AT the number
--        of the key before those of its name; ID; TTL in ms; TOKEN, or 0 for any
-- Reply  for each lease: 1 it lasts at least this long from now; 0 it is not live; -6 the script
--        has not finished its other work, and the client sends the request again; or the text of
--        the server's error

local states = {} -- by AT, because many leases may be of one name
local function open(at)
  local s = states[at]
  if not s then
    s = { key = KEYS[at + LOCK], fence = KEYS[at + FENCE], holders = KEYS[at + HOLDERS], queue = KEYS[at + QUEUE], detail = KEYS[at + DETAIL] }
    s.lock = read(s.key)
    s.unknown = s.lock and (s.lock.unknown or s.lock.group and readDetail(s)) or nil
    if s.lock and s.lock.group and not s.unknown then
      mend(s)
    end
    states[at] = s
  end
  return s
end

local function extend(at, id, ttl, token)
  local s = open(at)
  if s.unknown or s.more then
    return s.unknown or -6
  end
  -- INVARIANT I4: only the exact lease. An extend never makes a lease.
  local h = lease(s, id)
  if not h or h.ends and h.left <= 0 or token ~= '0' and h.token ~= token then
    return 0
  end
  return lengthen(s, h, tonumber(ttl)) or 1
end

local replies, n = {}, (#ARGV - HEAD_ARGS) / EACH_ARGS
for i = 0, n - 1 do
  -- An error must not spoil the other replies.
  local a = HEAD_ARGS + EACH_ARGS * i
  local ok, reply = pcall(extend, tonumber(ARGV[a + AT]), ARGV[a + ID], ARGV[a + TTL], ARGV[a + TOKEN])
  replies[i + 1] = ok and reply or type(reply) == 'table' and reply.err or tostring(reply)
end
for _, s in pairs(states) do
  if s.lock and not s.unknown then
    lengthened(s)
  end
end
return replies
