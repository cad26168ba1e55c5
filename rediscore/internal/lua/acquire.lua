-- acquire.lua: one attempt to take a lock, or to wait for it in the queue.
--
-- KEYS   as in queue.lua, and CANCELLED, the lease ID's tombstone
-- ARGV   as in queue.lua, as in request.lua, and WAITER_TTL in ms, or 0 for no
--        place; ONCE 1, or else 0; INBOX; FIRST 1 to change nothing for a lease ID that
--        has a lease or a place, or else 0
-- Reply  {1, token}                 granted, now or by an earlier copy
--        {0, ms left, holder, place, places, us, released}
--                                   held; -1 with no expiry, '' if foreign; place 0
--                                   for none; how many places there are; how long
--                                   ago it was granted, 0 if that is not known; 1 if
--                                   it is over, and the name is kept closed
--        {-1}                       cancelled before it arrived
--        {-2}                       MinToken is too far ahead of the clock
--        {-3}                       the last token is not a usable number
--        {-4, limit}                the name is in use with this limit
--        {2, record}                the name has a record
--        {3}                        the lease ID has a lease or a place, and FIRST is 1
--        {MORE}                     there is more to do first: send it again
-- All replies but the first and a place leave the store unchanged, but for
-- what settle does.

-- INVARIANT I5: a request overtaken by its own cancel grants nothing.
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
