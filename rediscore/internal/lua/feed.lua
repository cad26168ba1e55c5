-- feed.lua: what happens to a name is written down in lists next to it, and published.
-- It is the first piece of a script. Its functions are made only for engines that write
-- history, because the making costs the server time in every call.
--
-- Keys, whose names are made from DETAIL: the history, a list whose items are in the order of the steps:
--            THIS_LAYOUT <lease ID> <TTL in ms> <token> <granted> <holder as JSON>
--              an exclusive lease was granted plainly: the value of its key
--            R<clock> and the same: that lease was released plainly
--            <kind><clock> <token> <mode> <limit> <permits> <since> <holder as JSON>
--              with the kind a acquired, h handed over, r released, x expired,
--              l lost, b broken, c completed; since is from when to count for how
--              long it was held or waited, or 0; after a break there follow a tab,
--              and author and reason as JSON; clocks are in us, and that of x is
--              when the lease ended, as far as that is known
--            d<token>  the lease is shared now
--            nothing, to make up the number
--        The number is odd while somebody has a lease, and else even. So what it has
--        become with an item tells whether the end of a lease was missed. Nothing
--        else is to be relied on: other engines, which write no history, may do any
--        step. What cannot be written down is lost, and spoils no request.
--        It expires HISTORY_MEMORY after the end of the lease that there is, as it was
--        when it was renewed last: so who notices later that it is over knows when it was.
--        The crowd, a list of events of places, so that they push no others out:
--            <kind><clock> <half> <mode> <limit> <permits> <since> <holder as JSON>
--              with the kind q queued, w left, and the first half of the lease ID
-- ARGV   FEED is empty if this engine writes no history, and else what the channels begin
--        with: feed for events, each after the lock's
--        key, a tab, the clock in us and a tab; heard, where nothing is said, but whoever listens is to be
--        found, on every node of a cluster

local writes = ARGV[FEED] ~= ''
local listened, publish, bound, jot
if writes then
  -- listened tells whether anybody listens to events.
  function listened()
    return redis.pcall('PUBSUB', 'NUMSUB', ARGV[FEED] .. 'heard')[2] ~= 0
  end

  -- publish tells of events, without their lease IDs (INVARIANT I4).
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

  -- jot writes down what those do who wait, and reports whether it could.
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
