-- complete.lua: stores the record of a name, and ends the lease if the record begins with its ID.
-- It follows end.lua.
--
-- KEYS   as in queue.lua
-- ARGV   as in queue.lua; ID of the lease; DATA the lease ID, or 32 other bytes to keep the lease,
--        and directly after it the record; RETENTION in ms; FROM the number of the place after
--        which to continue, -inf at first
-- Reply  1            the record was stored, by this request or an earlier copy
--        0            the lease is not live
--        {1, number}  the record was stored, and some waiters have no notice yet; the client sends
--                     the request again with this number as FROM
--        {0, number}  the record was not stored yet; the client sends the request again

local s = open(0)
local id, from = ARGV[ID], ARGV[FROM]
s.ends = 'c'
if s.unknown then
  return redis.error_reply(s.unknown)
end
purge(s)
if s.more then
  return { 0, from }
end
local h = lease(s, id)
if h then
  redis.call('SET', s.record, ARGV[DATA], 'PX', ARGV[RETENTION])
  if string.sub(ARGV[DATA], 1, 32) ~= id then
    sweep(s)
    return 1
  end
  endLease(s, h)
elseif redis.call('GETRANGE', s.record, 0, 31) ~= id then
  sweep(s)
  return 0
end -- INVARIANT I6: a repeat finds its own record, and continues

serveOrYield(s)
if s.places > 0 then
  -- Waiters with Once in the middle of the queue get a notice as well.
  local page = redis.call('ZRANGEBYSCORE', s.queue, '(' .. from, '+inf', 'WITHSCORES', 'LIMIT', 0, room)
  local ids, gone = {}, {}
  for i = 1, #page, 2 do
    ids[#ids + 1], from = page[i], page[i + 1]
  end
  for _, p in ipairs(places(s, take(s, ids))) do
    if p and p.once == '1' then
      gone[#gone + 1] = p.id
      tell(p.inbox, p.id, '0')
    end
  end
  giveUpPlaces(s, gone)
end
if s.more then
  return { 1, from }
end
sweep(s)
return 1
