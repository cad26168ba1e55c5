-- feed.lua: the history of a name, which is written to two lists beside it, and published.
-- It is the first piece of a script. Its functions are made only for engines that write
-- history, because making them costs the server time in every call.
--
-- Keys, whose names are made from DETAIL
--        history, a list of the leases of the name. An item is one of
--            THIS_LAYOUT <lease ID> <TTL in ms> <token> <granted> <holder as JSON>
--              a plain request got an exclusive lease: the value of the lock's key
--            R<clock> and the same
--              a plain request released that lease
--            <kind><clock> <token> <mode> <limit> <permits> <since> <holder as JSON>
--              kind is a acquired, h handed over, r released, x expired, l lost, b broken or
--              c completed. since is when the lease or the wait began, or 0. After b there
--              follow a tab, and author and reason as JSON. clock is in us; that of x is
--              the end of the lease, as far as it is known
--            d<token>
--              the lease is shared now
--            nothing
--              to make up the number
--        The number of items is odd while there is a lease, and else even. So the number after
--        a new item shows whether the end of a lease is missing. Nothing else is reliable:
--        engines without history may do any step. An item that cannot be written is lost, and
--        fails no request. The list expires HISTORY_MEMORY after the end of the latest lease,
--        counted from its last renewal, so that a late client still learns when that was.
--        crowd, a list of the events of places, apart so that they push no others out:
--            <kind><clock> <half> <mode> <limit> <permits> <since> <holder as JSON>
--              kind is q queued or w left; half is the first half of the lease ID
-- ARGV   FEED is what channels begin with, and empty if this engine writes no history. The
--        channel feed has the events: the lock's key, a tab, the clock in us, a tab, and the
--        item. The channel heard has no messages: its subscribers show, on every node of a
--        cluster, that a client listens

local writes = ARGV[FEED] ~= ''
local listened, publish, bound, jot
if writes then
  -- listened reports whether a client listens to events.
  function listened()
    return redis.pcall('PUBSUB', 'NUMSUB', ARGV[FEED] .. 'heard')[2] ~= 0
  end

  -- publish publishes events, without their lease IDs (INVARIANT I4).
  function publish(key, clock, events)
    for _, event in ipairs(events) do
      event = string.gsub(event, '^(R?%d* ?)THIS_LAYOUT %x+ ', '%1THIS_LAYOUT ')
      redis.pcall('PUBLISH', ARGV[FEED] .. 'feed', key .. '\t' .. clock .. '\t' .. event)
    end
  end

  -- bound makes a history of n items short, and last long enough, with a lease that has
  -- left ms. INVARIANT I11. An even number goes. Half of the items may be empty.
  function bound(history, n, left)
    if n > MOST_ITEMS then
      redis.pcall('LTRIM', history, n - KEPT_ITEMS + n % 2, -1)
    end
    redis.pcall('PEXPIRE', history, string.format('%.0f', HISTORY_MEMORY + math.max(left, 0)))
  end

  -- jot writes events of places down, and reports whether it could.
  function jot(crowd, events)
    local n = redis.pcall('RPUSH', crowd, unpack(events))
    if type(n) ~= 'number' then
      return false
    end
    if n > MOST_ITEMS then
      redis.pcall('LTRIM', crowd, -KEPT_ITEMS, -1)
    end
    redis.pcall('PEXPIRE', crowd, HISTORY_MEMORY)
    return true
  end
end
