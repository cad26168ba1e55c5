-- complete.lua: stores the record of a name and ends the lease.
--
-- KEYS   1 to 7 as in queue.lua
-- ARGV   1, 2 as in queue.lua   3 lease ID   4 the record: the lease ID and the
--        data, with nothing between   5 retention in ms   6 number of the place
--        behind which to go on; -inf at first
-- Reply  1 stored, now or by an earlier copy   0 the lease is not live
--        {1, number}  stored, and there is more to do: send it again with this
--                     number; or {0, number}: not stored yet

local s = open(1)
local id, from = ARGV[3], ARGV[6]
tidy(s)
if s.more then
  return { 0, from }
end
local h = lease(s, id)
if h then
  redis.call('SET', s.record, ARGV[4], 'PX', ARGV[5])
  finish(s, id, h)
elseif redis.call('GETRANGE', s.record, 0, 31) ~= id then
  done(s)
  return 0
end -- INVARIANT I6: a repeat finds its own record, and goes on

pass(s)
if s.places > 0 then
  -- Those in the middle of the queue who asked for Once are told as well.
  local page = redis.call('ZRANGEBYSCORE', s.queue, '(' .. from, '+inf', 'WITHSCORES', 'LIMIT', 0, room)
  local ids, gone, news = {}, {}, {}
  for i = 1, #page, 2 do
    ids[#ids + 1], from = page[i], page[i + 1]
  end
  for _, p in ipairs(places(s, take(s, ids))) do
    if p and p.once == '1' then
      gone[#gone + 1], news[#news + 1] = p.id, p
    end
  end
  quit(s, gone)
  for _, p in ipairs(news) do
    tell(p.inbox, p.id, '0')
  end
end
if s.more then
  return { 1, from }
end
done(s)
return 1
