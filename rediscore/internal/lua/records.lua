-- records.lua: tells of the records of many names without reading them whole.
--
-- KEYS   for each name: RECORD
-- ARGV   HEAD how many bytes of each to show
-- Reply  for each name: {ms left, length, head}, {} if there is none, or the text
--        of the server's error

local replies = {}
for at = 0, #KEYS - EACH_KEYS, EACH_KEYS do
  local key, reply = KEYS[at + RECORD], {}
  local length = redis.pcall('STRLEN', key)
  if type(length) == 'table' then
    reply = length.err -- one must not spoil the others
  elseif length >= 32 then -- behind the lease ID
    reply = { redis.call('PTTL', key), length - 32, redis.call('GETRANGE', key, 32, 31 + tonumber(ARGV[HEAD])) }
  end
  replies[#replies + 1] = reply
end
return replies
