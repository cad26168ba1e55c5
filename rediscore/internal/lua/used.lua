-- used.lua: reports which of many names are held or have waiters. A list sends all names whose
-- last token is remembered, and few of those are in use. The script writes nothing.
--
-- KEYS   for each name: LOCK, DETAIL
-- Reply  for each name: 1 if it has one of these keys, or if the server refuses to look; else 0

-- The script looks for this many keys in one command. If any exists, it looks for each name.
local TOGETHER = EACH_KEYS * 16

local replies = {}
for from = 1, #KEYS, TOGETHER do
  local to = math.min(from + TOGETHER - 1, #KEYS)
  local any = redis.pcall('EXISTS', unpack(KEYS, from, to))
  for k = from, to, EACH_KEYS do
    local used = any ~= 0 and redis.pcall('EXISTS', unpack(KEYS, k, k + EACH_KEYS - 1)) ~= 0
    replies[#replies + 1] = used and 1 or 0
  end
end
return replies
