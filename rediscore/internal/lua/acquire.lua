-- acquire.lua: one attempt to take a lock, or to wait for it in the queue.
--
-- KEYS   1 to 7 as in queue.lua   8 the lease ID's tombstone
-- ARGV   1, 2 as in queue.lua   3 greatest lead of MinToken in us
--        4 to 10 as in request.lua   11 WaiterTTL in ms, or 0 for no place
--        12 1 for Once, else 0   13 inbox
-- Reply  {1, token}                 granted, now or by an earlier copy
--        {0, ms left, holder, place}  held; -1 without an end, '' if foreign;
--                                   place 0 for none
--        {-1}                       cancelled before it arrived
--        {-2}                       MinToken is too far ahead of the clock
--        {-3}                       the last token is not a usable number
--        {-4, limit}                the name is in use with this limit
--        {2, record}                the name has a record
--        {MORE}                     there is more to do first: send it again
-- All replies but the first and a place leave the store unchanged, but for
-- what settle does.

-- INVARIANT I5: a request overtaken by its own cancel grants nothing.
if redis.call('EXISTS', KEYS[8]) == 1 then
  return { -1 }
end

local s = open(1)
if s.lock and s.lock.err then
  return redis.error_reply(s.lock.err)
end
local r = request(4)
if not settle(s) then
  return { MORE }
end

local reply = repeated(s, r)
if reply then
  return reply
end
local record = ARGV[12] == '1' and redis.call('GET', s.record)
if record then
  quit(s, { r.id })
  if not settle(s) then
    return { MORE }
  end
  return { 2, string.sub(record, 33) }
end
reply = refused(s, r)
if reply and reply[1] == 0 and ARGV[11] ~= '0' then
  local p = place(s, r.id)
  if p then
    renew(s, p, tonumber(ARGV[11]), ARGV[13])
  elseif tooFar(r) then
    return { -2 }
  else
    r.ttl = tonumber(ARGV[11])
    r.ends, r.since, r.once, r.inbox = millis() + r.ttl, num(millis()), ARGV[12], ARGV[13]
    join(s, r)
  end
  reply[4] = rank(s, r.id)
end
if reply then
  return reply
end
grant(s, r, r.token, r.ttl)
return { 1, tonumber(r.token) }
