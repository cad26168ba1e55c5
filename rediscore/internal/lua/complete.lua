-- complete.lua: stores the record of a name and ends the lease, unless the record
-- is not of that lease.
--
-- KEYS   as in queue.lua
-- ARGV   as in queue.lua, and ID of the lease; DATA the lease ID, or as many
--        other bytes if the lease goes on, and the record, with nothing between; RETENTION in ms; FROM number of the place behind
--        which to go on, -inf at first
-- Reply  1 stored, now or by an earlier copy   0 the lease is not live
--        {1, number}  stored, and there is more to do: send it again with this
--                     number; or {0, number}: not stored yet

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
  endLease(s, id, h)
elseif redis.call('GETRANGE', s.record, 0, 31) ~= id then
  sweep(s)
  return 0
end -- INVARIANT I6: a repeat finds its own record, and goes on

serveOrYield(s)
if s.places > 0 then
  -- Those in the middle of the queue who asked for Once are told as well.
  local page = redis.call('ZRANGEBYSCORE', s.queue, '(' .. from, '+inf', 'WITHSCORES', 'LIMIT', 0, room)
  local ids, gone, notices = {}, {}, {}
  for i = 1, #page, 2 do
    ids[#ids + 1], from = page[i], page[i + 1]
  end
  for _, p in ipairs(places(s, take(s, ids))) do
    if p and p.once == '1' then
      gone[#gone + 1], notices[#notices + 1] = p.id, p
    end
  end
  giveUpPlaces(s, gone)
  for _, p in ipairs(notices) do
    tell(p.inbox, p.id, '0')
  end
end
if s.more then
  return { 1, from }
end
sweep(s)
return 1
