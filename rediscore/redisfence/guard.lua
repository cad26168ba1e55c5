-- guard.lua: runs a body only for a token that is not stale. It is put behind
--
--     local function body(KEYS, ARGV) <the body's source> end
--
-- so that the body sees KEYS and ARGV without what the check needs, and none
-- of the names below.
--
-- KEYS   1 the resource   2 its mark   the body's other keys
-- ARGV   1 token   2 lease ID, or ''   3 ms to keep the mark without the resource
--        the body's arguments
-- Reply  {1, the body's value}   accepted; {1} if that is nil
--        {0, token}              stale; the mark
--        {-1}                    the resource's key is the lock of the lease
--        {-2}                    the mark is not a usable one
--        {2, text}               accepted, and the body raised or returned an
--                                error, perhaps after it wrote
-- The negative replies and {0} leave the store unchanged.
--
-- The mark is a string, <token> <lease ID>. It never goes down.

-- A lock's value has its lease ID behind the number of the layout.
if ARGV[2] ~= '' and redis.call('TYPE', KEYS[1]).ok == 'string'
  and string.find(redis.call('GETRANGE', KEYS[1], 0, 63), '^%d* ?' .. ARGV[2] .. ' ') then
  return { -1 }
end

local token = tonumber(ARGV[1])
local known = redis.call('GET', KEYS[2])
local last, holder = 0, ''
if known then
  last, holder = string.match(known, '^([1-9]%d*) ([0-9a-f]*)$')
  -- Tokens are compared as numbers, which are exact below 2^53.
  last = tonumber(last)
  if not last or last >= 9007199254740991 or #holder ~= 32 and holder ~= '' then
    return { -2 }
  end
end

-- INVARIANT I4: of two holders with equal tokens only one may pass.
if token < last or token == last and holder ~= ARGV[2] then
  return { 0, last }
end
-- Before the body and without an expiry: whatever becomes of the body, the
-- mark is there.
if token > last then
  redis.call('SET', KEYS[2], ARGV[1] .. ' ' .. ARGV[2])
elseif redis.call('PTTL', KEYS[2]) ~= -1 then
  -- Only if need be: after a script's first write, a full server lets it write
  -- what it likes.
  redis.call('PERSIST', KEYS[2])
end

local keys, args = { KEYS[1] }, {}
for i = 3, #KEYS do
  keys[i - 1] = KEYS[i]
end
for i = 4, #ARGV do
  args[i - 3] = ARGV[i]
end
local ok, value = pcall(body, keys, args)

-- INVARIANT I11: the mark lives as long as the resource, and a while longer.
-- From here on nothing may fail, since the body has written; a mark that lives
-- too long does no harm.
local left = redis.pcall('PTTL', KEYS[1])
if type(left) == 'number' and left ~= -1 then
  redis.pcall('PEXPIRE', KEYS[2], string.format('%.0f', math.max(left, 0) + tonumber(ARGV[3])))
end

local failed = not ok and value or type(value) == 'table' and value.err
if failed then
  return { 2, type(failed) == 'table' and failed.err or tostring(failed) }
end
return { 1, value }
