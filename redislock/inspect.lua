-- inspect.lua: reports what the store knows of many names. It writes nothing.
--
-- KEYS   for each name: the lock, its last token
-- Reply  for each name: {ms left, value, last token}, with -1 ms without an
--        end, -2 ms and '' if the name is free, '' for no token; or the text
--        of the server's error

local replies = {}
for i = 1, #KEYS, 2 do
  local value = redis.pcall('GET', KEYS[i]) or ''
  local last = redis.pcall('GET', KEYS[i + 1]) or ''
  if type(value) == 'table' then
    replies[#replies + 1] = value.err
  elseif type(last) == 'table' then
    replies[#replies + 1] = last.err
  else
    replies[#replies + 1] = { redis.call('PTTL', KEYS[i]), value, last }
  end
end
return replies
