-- release.lua: ends a lease, gives up a place, and cancels an acquire. It follows end.lua.
--
-- KEYS   as in queue.lua; CANCELLED is the tombstone of the lease ID
-- ARGV   as in queue.lua; ID of the lease; KEEP_FOR ms to keep the name closed, or 0;
--        CANCEL_MEMORY ms to remember the cancel, 0 for no cancel; LOST 1 if the holder counts the
--        lease as lost, else 0; INBOX of the client
-- Reply  {ended, text, more, message}
--        ended  1 if the lease was ended, 0 if it was not live
--        text   '', or the server's error if the cancel was not remembered, because a full server
--               still lets a lease be ended
--        more   1 if other work remains; the client sends the request again
--        message  a message to INBOX that was not published, or ''

local id, remember = ARGV[ID], ''
if ARGV[CANCEL_MEMORY] ~= '0' then
  -- INVARIANT I5: even if there is a lease to end, because a second copy of its acquire may
  -- still arrive.
  remember = redis.pcall('SET', KEYS[CANCELLED], '', 'PX', ARGV[CANCEL_MEMORY]).err or ''
end

local s = open(0, value)
s.ends = ARGV[LOST] == '1' and 'l' or 'r'
if s.unknown then
  return redis.error_reply(s.unknown)
end
purge(s)
if s.more then
  -- The lease lasts until the client's next call, so that no other request is granted before it.
  return { 0, remember, 1, '' }
end
local h = lease(s, id)
if h and ARGV[KEEP_FOR] ~= '0' then
  local err = keepClosed(s, h, tonumber(ARGV[KEEP_FOR]))
  if err then
    return redis.error_reply(err)
  end
elseif h then
  endLease(s, h)
end
giveUpPlaces(s, { id })
serveOrYield(s)
if h and ARGV[KEEP_FOR] ~= '0' then
  -- The name may open earlier than the waiter expects.
  wake(s, '0')
end
sweep(s)
return { h and 1 or 0, remember, s.more and 1 or 0, '' }
