-- acquire_all.lua: takes several locks, or none. It follows request.lua.
--
-- KEYS   for each name: as in queue.lua; CANCELLED is the tombstone of the lease ID
-- ARGV   as in queue.lua and request.lua
-- Reply  {1, token of each}          all leases were granted, by this request or an earlier copy
--        {0, index from 0, refusal}  the first request that was refused. The refusal is the reply
--                                    of acquire.lua, or {the text of the error}
--        {MORE}                      as in acquire.lua

local states, requests, n = {}, {}, (#ARGV - HEAD_ARGS) / EACH_ARGS
local width = #KEYS / n
for i = 0, n - 1 do
  local s, r = open(width * i), request(HEAD_ARGS + EACH_ARGS * i)
  local reply
  if s.err then
    reply = { s.err }
  elseif redis.call('EXISTS', KEYS[width * i + CANCELLED]) == 1 then
    reply = { -1 } -- INVARIANT I5
  elseif not settle(s) then
    return { MORE }
  else
    r.held = lease(s, r.id)
    reply = not r.held and refused(s, r)
  end
  if reply and reply.err then
    return reply
  end
  if reply then
    return { 0, i, reply }
  end
  states[i + 1], requests[i + 1] = s, r
end

local replies = { 1 }
for i, r in ipairs(requests) do
  if r.held then
    local reply = repeated(states[i], r)
    if reply.err then
      return reply
    end
    replies[i + 1] = reply[2]
  else
    grant(states[i], r)
    replies[i + 1] = tonumber(r.token)
  end
end
return replies
