-- feed.lua: the history of a name, which is kept in two lists and published. It is the first
-- piece of a script. Its functions are made only for engines that record history, because making
-- them costs the server time in every call.
--
-- Keys, whose names are made from DETAIL
--        history  list of the events of leases. An item is one of
--            THIS_LAYOUT <lease ID> <TTL in ms> <token> <granted> <holder as JSON>
--              a plain request was granted an exclusive lease: the value of the lock's key
--            R<clock> and the same
--              a plain request released that lease
--            <kind><clock> <token> <mode> <limit> <permits> <since> <holder as JSON>
--              kind is a acquired, h handed over, r released, x expired, l lost, b broken or
--              c completed. clock is in us; an event x has the end of the lease, as far as it is
--              known. since is when the lease or the wait began, or 0. An event b is followed by
--              a tab, and author and reason as JSON
--            d<token>
--              the lease became shared
--            nothing
--              keeps the count odd or even
--        The count of items is odd while there is a lease, and even otherwise. So the count after
--        a new item shows whether the end of a lease is missing. Nothing else is reliable:
--        engines without history may do any step. An item that cannot be written is lost, and
--        fails no request. The list expires HISTORY_MEMORY after the end of the latest lease,
--        counted from its last renewal, so that a late client still learns when that was.
--        crowd  list of the events of places, separate so that they displace no events of leases:
--            <kind><clock> <half> <mode> <limit> <permits> <since> <holder as JSON>
--              kind is q queued or w left; half is the first half of the lease ID
-- ARGV   FEED is the first part of the names of channels, or empty if the engine records no
--        history. On the channel feed each event is published: the lock's key, a tab, the clock
--        in us, a tab, and the item. On the channel heard nothing is published: its subscribers
--        show, on every node of a cluster, that a client listens

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

  -- bound shortens a list of n items, and makes it outlast a lease that has left ms
  -- (INVARIANT I11). It removes an even number of items. In a history half of them may be empty.
  function bound(list, n, left)
    if n > MOST_ITEMS then
      redis.pcall('LTRIM', list, n - KEPT_ITEMS + n % 2, -1)
    end
    redis.pcall('PEXPIRE', list, string.format('%.0f', HISTORY_MEMORY + math.max(left, 0)))
  end

  -- jot appends events of places, and reports whether the server accepted them.
  function jot(crowd, events)
    local n = redis.pcall('RPUSH', crowd, unpack(events))
    if type(n) ~= 'number' then
      return false
    end
    bound(crowd, n, 0)
    return true
  end
end
