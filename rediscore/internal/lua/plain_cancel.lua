-- plain_cancel.lua: cancels requests for exclusive locks that have no queue. It follows
-- plain_release.lua.
--
-- KEYS   for each lease: LOCK, DETAIL; CANCELLED is the tombstone of the lease ID
-- ARGV   CANCEL_MEMORY ms to remember a cancel; FEED as in feed.lua; for each lease: its ID
-- Reply  for each lease: 1 it was ended; 2 there was none; 0 the request is not plain, and the
--        tombstone may have been written

local release = plain
local function plain(k, a)
  -- A name is plain if it has an exclusive lease, or none.
  local value, mine = redis.call('GET', KEYS[k + LOCK]), 'THIS_LAYOUT ' .. ARGV[a + ID] .. ' '
  if value and not string.find(value, '^THIS_LAYOUT %w') or redis.call('EXISTS', KEYS[k + DETAIL]) ~= 0 then
    return 0
  end
  -- INVARIANT I5: the tombstone comes first, even if there is a lease to end.
  redis.call('SET', KEYS[k + CANCELLED], '', 'PX', ARGV[CANCEL_MEMORY])
  return value and string.sub(value, 1, #mine) == mine and release(k, a) or 2
end
