-- list.lua: describes many names, as far as they have nothing but an exclusive lease. It writes
-- nothing. It follows clock.lua.
--
-- KEYS   for each name: LOCK, FENCE, DETAIL
-- Reply  for each name: 0 if it has no lock and no companions; '<now> <ms left> <last token>
--        <value>', as in inspect.lua, if it has a lock without companions; 1 if inspect.lua must
--        describe it

local function describe(at)
  local value, last = redis.pcall('GET', KEYS[at + LOCK]), ''
  if type(value) == 'string' then
    last = redis.pcall('GET', KEYS[at + FENCE]) or ''
  end
  if type(value) == 'table' or type(last) == 'table' then
    return 1 -- inspect.lua reports the error
  end
  return value and num(millis()) .. ' ' .. redis.call('PTTL', KEYS[at + LOCK]) .. ' ' .. last .. ' ' .. value or 0
end

-- The script looks for the companions of this many names in one command. If there are any, it looks
-- for the companions of each name.
local TOGETHER = 16 * EACH_KEYS

local replies = {}
for from = 0, #KEYS - EACH_KEYS, TOGETHER do
  local to, details = math.min(from + TOGETHER, #KEYS) - EACH_KEYS, {}
  for at = from, to, EACH_KEYS do
    details[#details + 1] = KEYS[at + DETAIL]
  end
  local any = redis.pcall('EXISTS', unpack(details))
  for at = from, to, EACH_KEYS do
    local plain = any == 0 or redis.pcall('EXISTS', KEYS[at + DETAIL]) == 0
    replies[#replies + 1] = plain and describe(at) or 1
  end
end
return replies
