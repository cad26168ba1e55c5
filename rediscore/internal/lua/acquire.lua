-- acquire.lua: takes a lock, or a place in its queue. It follows request.lua.
--
-- KEYS   as in queue.lua; CANCELLED is the tombstone of the lease ID
-- ARGV   as in queue.lua and request.lua; WAITER_TTL in ms, 0 to take no place; ONCE 1 for work
--        that is done once, else 0; INBOX of the client; FIRST 1 to refuse a lease ID that has
--        a lease or a place, else 0
-- Reply  {1, token}   the lease was granted, by this request or an earlier copy
--        {0, ms left, holder, place, places, us, released}
--                     the lock is held. ms left is -1 for no expiry; holder is '' for a foreign
--                     client; place is 0 for none; places is the length of the queue; us is the
--                     time since the grant, 0 if unknown; released is 1 if the lease has ended
--                     and the name is kept closed, else 0
--        {-1}         the request was cancelled before it arrived
--        {-2}         MinToken is too far ahead of the clock
--        {-3}         the last token is not a usable number
--        {-4, limit}  the name is in use with this limit
--        {2, record}  the name has a record; the request's place was given up
--        {3}          the lease ID has a lease or a place, and FIRST is 1
--        {MORE}       the script has not finished its other work; the client sends the request again
-- A negative reply, {3} and {MORE} change nothing, except that settle ends what has expired and
-- hands the lock over.

-- INVARIANT I5: a request that arrives after its own cancel grants nothing.
if cancelled then
  return { -1 }
end

local s = open(0, value)
if s.err then
  return redis.error_reply(s.err)
end
local r = request(HEAD_ARGS)
if not settle(s) then
  return { MORE }
end

if ARGV[FIRST] == '1' and (lease(s, r.id) or place(s, r.id)) then
  return { 3 }
end
local reply = repeated(s, r)
if reply then
  return reply
end
local record = ARGV[ONCE] == '1' and redis.call('GET', s.record)
if record then
  giveUpPlaces(s, { r.id })
  if not settle(s) then
    return { MORE }
  end
  return { 2, string.sub(record, 33) }
end
reply = refused(s, r)
if reply and reply[1] == 0 and ARGV[WAITER_TTL] ~= '0' then
  local p = place(s, r.id)
  if p then
    p.asked, p.changed, p.inbox = tonumber(ARGV[WAITER_TTL]), p.inbox ~= ARGV[INBOX], ARGV[INBOX]
    p.rest = restOf(p)
    refreshPlaces(s, { p })
  elseif tooFar(r) then
    return { -2 }
  else
    r.ttl = tonumber(ARGV[WAITER_TTL])
    r.ends, r.since, r.once, r.inbox = millis() + r.ttl, num(millis()), ARGV[ONCE], ARGV[INBOX]
    givePlace(s, r)
  end
  reply[4], reply[5] = rank(s, r.id), s.places
end
if reply then
  return reply
end
grant(s, r)
return { 1, tonumber(r.token) }
