-- records.lua: describes the records of many names, and reads only their beginnings.
--
-- KEYS   for each name: RECORD
-- ARGV   HEAD how many bytes of each record to read
-- Reply  for each name: {ms left, length, first bytes}, {} if there is none, or the text of the
--        server's error

local replies = {}
for at = 0, #KEYS - EACH_KEYS, EACH_KEYS do
  local key, reply = KEYS[at + RECORD], {}
  local length = redis.pcall('STRLEN', key)
  if type(length) == 'table' then
    reply = length.err -- an error must not spoil the other replies
  elseif length >= 32 then -- the lease ID precedes the record
    reply = { redis.call('PTTL', key), length - 32, redis.call('GETRANGE', key, 32, 31 + tonumber(ARGV[HEAD])) }
  end
  replies[#replies + 1] = reply
end
return replies
