-- records.lua: describes the records of many names, and reads only their beginnings. It precedes
-- each.lua.
--
-- KEYS   for each name: RECORD
-- ARGV   HEAD how many bytes of each record to read
-- Reply  for each name: {ms left, length, first bytes}, {} if there is none, or the text of the
--        server's error

local function one(at)
  local key = KEYS[at + RECORD]
  local length = redis.call('STRLEN', key) - 32 -- the lease ID precedes the record
  return length < 0 and {} or { redis.call('PTTL', key), length, redis.call('GETRANGE', key, 32, 31 + ARGV[HEAD]) }
end
