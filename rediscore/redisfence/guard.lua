-- guard.lua: runs a body for a token that is not stale. It follows
--
--     local function body(KEYS, ARGV) <the body's source> end
--
-- so the body sees KEYS and ARGV without those of the guard, and none of the names below.
--
-- KEYS   1 the resource; 2 its mark; then the body's other keys
-- ARGV   1 token; 2 lease ID, or empty; 3 ms to keep the mark without the resource; then the
--        body's arguments
-- Reply  {1, value}  the claim was accepted; the body's value, {1} for nil
--        {2, text}   the claim was accepted, and the body raised or returned an error, perhaps
--                    after it wrote
--        {0, token}  the claim is stale; the token of the mark
--        {-1}        the resource's key is the lock of the lease
--        {-2}        the mark is not usable
-- {0, token} and the negative replies change nothing.
--
-- The mark is a string, <token> <lease ID>. Its token never decreases.

-- In the value of a lock the lease ID follows the number of the layout.
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

-- INVARIANT I4: of two holders with equal tokens only one is accepted.
if token < last or token == last and holder ~= ARGV[2] then
  return { 0, last }
end
-- Written before the body runs, and without an expiry, so that the mark exists whatever the body
-- does.
if token > last then
  redis.call('SET', KEYS[2], ARGV[1] .. ' ' .. ARGV[2])
elseif redis.call('PTTL', KEYS[2]) ~= -1 then
  -- Only if necessary, because after a script's first write a full server accepts all others.
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

-- INVARIANT I11: the mark lives as long as the resource, and a while longer. From here on nothing
-- may fail, because the body has written. A mark that lives too long does no harm.
local left = redis.pcall('PTTL', KEYS[1])
if type(left) == 'number' and left ~= -1 then
  redis.pcall('PEXPIRE', KEYS[2], string.format('%.0f', math.max(left, 0) + tonumber(ARGV[3])))
end

local failed = not ok and (value or 'an error without a text') or type(value) == 'table' and value.err
if failed then
  return { 2, type(failed) == 'table' and failed.err or tostring(failed) }
end
return { 1, value }
