-- state.lua: the leases of a name that several may have at a time. It is put
-- behind value.lua and clock.lua, in front of every script that changes leases.
--
-- While a name has shared leases or permits, its key says *<group> <limit>.
-- Beside it are, with further keys that queue.lua describes:
--     holders  sorted set: member -> end in ms of the server's clock. A member
--              is a lease ID, or '-<lease ID> <token>' for a lease that is over
--              and keeps its share of the name closed.
--     detail   hash: 'group' as in the key, 'used' permits, 'seen' the greatest
--              clock in ms by which an end was set, and for each member
--              'h<member>' -> <TTL in ms> <token> <permits> <holder as JSON>
-- A group is called after the lease ID of its first lease. The leases count
-- only while key and detail name the same group and holders is there: so who
-- deletes the key ends them all, and after the loss of a companion the name
-- stays closed until the key expires.
--
-- A state s is a table with the names of the keys (key, holders, waiters,
-- detail, and more in queue.lua), the lock that read found, and
--     mine  whether the leases in holders are live
--     used, seen  as in detail

-- Companions outlive what they hold by so many ms, so that they go away by
-- themselves (INVARIANT I11) and are seldom found in part.
local SLACK = 5000

-- keep makes companions last as long as something that ends at ends. It always
-- writes: after the first write a full server refuses the script nothing more,
-- so that with keep in front leases and places can be renewed there.
local function keep(ends, ...)
  for _, key in ipairs({ ... }) do
    redis.call('PEXPIRE', key, num(math.max(redis.call('PTTL', key), ends - millis() + SLACK)))
  end
end

-- writeGroup makes the lock's key that of a group whose last lease ends at
-- ends.
local function writeGroup(s, ends)
  redis.call('SET', s.key, '*' .. s.lock.group .. ' ' .. num(s.lock.limit), 'PXAT', ends)
end

-- seal makes the lock's key end with the last lease.
local function seal(s)
  local last = redis.call('ZRANGE', s.holders, -1, -1, 'WITHSCORES')[2]
  -- Time goes on during a script: to set an end that has just passed deletes
  -- the key, and then a later lease must bring it back.
  if redis.call('PEXPIREAT', s.key, last) == 0 then
    writeGroup(s, last)
  end
end

-- holding returns what is known of a member of holders, or nil.
local function holding(s, member)
  local ends = redis.call('ZSCORE', s.holders, member)
  local record = ends and redis.call('HGET', s.detail, 'h' .. member)
  local ttl, token, permits, holder = string.match(record or '', '^(%d+) (%d+) (%d+) (.*)$')
  return ttl and {
    ends = tonumber(ends), ttl = tonumber(ttl), token = token, permits = tonumber(permits), holder = holder,
  }
end

-- enter records a lease as a member of holders.
local function enter(s, member, h)
  redis.call('ZADD', s.holders, num(h.ends), member)
  redis.call('HSET', s.detail, 'h' .. member, num(h.ttl) .. ' ' .. h.token .. ' ' .. num(h.permits) .. ' ' .. h.holder,
    'group', s.lock.group, 'used', num(s.used), 'seen', num(millis()))
  keep(h.ends, s.holders, s.detail)
  seal(s)
end

-- found makes a free name that of a group.
local function found(s, group, limit, ends)
  s.lock, s.mine, s.used = { group = group, limit = limit }, true, 0
  writeGroup(s, num(ends))
end

-- forget ends the group: its leases, and its key if that still is its own.
local function forget(s)
  redis.call('DEL', s.holders)
  redis.call('HDEL', s.detail, 'group', 'used')
  if s.mine then
    redis.call('DEL', s.key)
    s.lock, s.mine = nil, false
  end
  s.used = 0
end

-- leave ends one lease.
local function leave(s, member, h)
  redis.call('ZREM', s.holders, member)
  redis.call('HDEL', s.detail, 'h' .. member)
  if redis.call('EXISTS', s.holders) == 0 then
    forget(s)
    return
  end
  s.used = s.used - (h and h.permits or 0)
  redis.call('HSET', s.detail, 'used', num(s.used))
  seal(s)
end

-- stretch makes a lease last at least ttl ms.
local function stretch(s, member, h, ttl)
  local ends = millis() + ttl
  if ends > h.ends then
    h.ends, h.ttl = ends, ttl
    keep(ends, s.holders, s.detail)
    enter(s, member, h)
  end
end

-- look reads which group the detail knows, and tells whether its leases are
-- live. It returns whether there is anything to tidy up in holders.
local function look(s)
  local known = redis.call('HMGET', s.detail, 'group', 'used', 'seen')
  local any = redis.call('EXISTS', s.holders) == 1
  s.used, s.seen = tonumber(known[2] or 0), tonumber(known[3] or 0)
  s.mine = any and s.lock ~= nil and s.lock.group ~= nil and s.lock.group == known[1]
  return not s.mine and (any or known[1])
end

-- shorten brings the ends in a sorted set back to now plus the TTL.
local function shorten(s, set, mark)
  local all = redis.call('ZRANGE', set, 0, -1, 'WITHSCORES')
  for i = 1, #all, 2 do
    local ttl = string.match(redis.call('HGET', s.detail, mark .. all[i]) or '', '^%d+') or 0
    local latest = millis() + tonumber(ttl)
    if tonumber(all[i + 1]) > latest then
      redis.call('ZADD', set, num(latest), all[i])
    end
  end
end

-- rewind notices a clock that went back: then nothing may last longer than the
-- TTL that it was last given, counted from now. No end is later than 'seen'
-- plus its TTL, so that at a later clock there is nothing to do.
local function rewind(s)
  if s.seen > millis() then
    redis.call('HDEL', s.detail, 'seen') -- needs no memory; see keep
    shorten(s, s.holders, 'h')
    shorten(s, s.waiters, 'w')
    s.seen = millis()
    redis.call('HSET', s.detail, 'seen', num(s.seen))
    if s.mine then
      seal(s)
    end
  end
end
