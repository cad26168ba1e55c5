-- each.lua: calls the function one for each request of a call, at the end of a script. The plain
-- scripts have plain_each.lua.
--
-- Reply  for each request: what one returns, or the text of the server's error, which must not
--        spoil the other replies

local replies = {}
for i = 0, (#KEYS - HEAD_KEYS) / EACH_KEYS - 1 do
  local ok, reply = pcall(one, HEAD_KEYS + EACH_KEYS * i, HEAD_ARGS + EACH_ARGS * i)
  replies[i + 1] = ok and reply or type(reply) == 'table' and reply.err or tostring(reply)
end
return replies
