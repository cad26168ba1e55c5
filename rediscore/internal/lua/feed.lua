-- feed.lua: what happens to a name is written down beside it, and told to those who
-- listen. It is there only in engines that write history, in front of all else, as
-- short as can be.
--
-- KEYS   for each name: HISTORY, a list whose items are in the order of the steps:
--            THIS_LAYOUT <lease ID> <TTL in ms> <token> <granted> <holder as JSON>
--              an exclusive lease was granted plainly: the value of its key
--            R<clock> and the same: that lease was released plainly
--            <kind><clock> <token> <mode> <limit> <permits> <since> <holder as JSON>
--              with the kind a acquired, h handed over, r released, x expired,
--              l lost, b broken, c completed; q queued, w left, which have the first
--              half of the lease ID instead of a token; since is from when to count
--              for how long it was held or waited, or 0; after a break there follow
--              a tab, and author and reason as JSON; clocks are in us
--            d<token>  the lease is shared now
--            nothing, to make up the number
--        The number is odd while somebody has a lease, and else even. So what it has
--        become with an item tells whether the end of a lease was missed. Nothing
--        else is to be relied on: other engines, which write no history, may do any
--        step. What cannot be written down is lost, and spoils no request.
-- ARGV   INBOXES what the channels begin with: feed for events, each after the lock's
--        key and a tab; heard, where nothing is said, but whoever listens is to be
--        found, on every node of a cluster

-- listened tells whether anybody listens to events.
local function listened()
  return redis.pcall('PUBSUB', 'NUMSUB', ARGV[INBOXES] .. 'heard')[2] ~= 0
end

-- publish tells of events, without their lease IDs (INVARIANT I4).
local function publish(key, events)
  for _, event in ipairs(events) do
    event = string.gsub(event, '^(R?%d* ?)THIS_LAYOUT %x+ ', '%1THIS_LAYOUT ')
    redis.pcall('PUBLISH', ARGV[INBOXES] .. 'feed', key .. '\t' .. event)
  end
end

-- bound makes a history of n items short, and last long enough. INVARIANT I11. An
-- even number goes. Half of the items may be empty.
local function bound(history, n)
  if n > MOST_ITEMS then
    redis.pcall('LTRIM', history, n - KEPT_ITEMS + n % 2, -1)
  end
  redis.pcall('PEXPIRE', history, HISTORY_MEMORY)
end

-- lapsed returns the events that are missing: of the leases whose end nobody has
-- reported. It is for when there are no leases.
local function lapsed(history, clock)
  local list, over, shared, events = redis.pcall('LRANGE', history, 0, -1), {}, {}, {}
  for i = #list, 1, -1 do
    local item = list[i]
    local token, granted, holder = string.match(item, '^THIS_LAYOUT %x+ %d+ (%d+) (%d+) (.*)$')
    local kind = '0 0 0'
    if not token then
      granted, token, kind, holder = string.match(item, '^[ah](%d+) (%d+) (%d %d+ %d+) %d+ (.*)$')
    end
    if not token then
      over[string.match(item, '^R%d+ THIS_LAYOUT %x+ %d+ (%d+) ') or string.match(item, '^[rxlbc]%d+ (%d+) ') or ''] = true
      shared[string.match(item, '^d(%d+)$') or ''] = true
    elseif not over[token] then
      over[token] = true
      table.insert(events, 1, 'x' .. clock .. ' ' .. token .. ' ' .. (shared[token] and '1 0 0' or kind) .. ' ' .. granted .. ' ' .. holder)
    end
  end
  return events
end
