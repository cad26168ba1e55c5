-- plain_each.lua: calls plain for each request of a call, at the end of every plain script. More
-- keys may follow those that a script names, declared for a cluster.
--
-- INVARIANT: plain either returns 0 and changes nothing that the full script or a user can
-- notice, or does exactly what the full script would do. TestPlainIsFull checks it.

local replies, n = {}, (#ARGV - HEAD_ARGS) / EACH_ARGS
local width = #KEYS / n
for i = 0, n - 1 do
  -- An error must not spoil the other replies.
  local ok, reply = pcall(plain, width * i, HEAD_ARGS + EACH_ARGS * i, width)
  replies[i + 1] = ok and reply or 0
end
return replies
