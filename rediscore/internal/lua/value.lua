-- value.lua: what a lock's key holds. It is put in front of every script that
-- changes leases.
--
-- The key is a string with an expiry, in one of these forms. Each of holdfast's
-- begins with the number of the layout, which is THIS_LAYOUT here:
--     <number> <lease ID> <TTL in ms> <token> <granted> <holder as JSON>
--         one exclusive lease; granted is the clock in us when it was, which only
--         people are told: a token may be ahead of the clock. With a '-' before the
--         lease ID if the lease is over and the name is kept closed, so that no
--         lease ID matches it; with '/<proposer>' behind it if an engine of a quorum
--         has proposed the lease, and nobody has extended it yet
--     <number> *<group> <limit>
--         shared leases (limit 0) or permits (limit above 0), which state.lua
--         describes; it expires with the last of them
--     any other string
--         the lock of a foreign client

-- unknown returns the error of a value of holdfast's in a layout that is not
-- this one, nil for any other value. Such a name is neither free nor a foreign
-- client's (INVARIANT I1): only its own version knows what is in its keys.
local function unknown(value)
  local number, id = string.match(value, '^(%d+) %p?([0-9a-f]+)[ /]')
  return id and #id == 32 and number ~= 'THIS_LAYOUT' and 'LAYOUT ' .. number or nil
end

-- unknownDetail returns the error of companions in a layout that is not this one,
-- which their detail names, else nil. state.lua has the rule.
local function unknownDetail(detail, layout)
  if layout ~= 'THIS_LAYOUT' and redis.call('EXISTS', detail) == 1 then
    return 'LAYOUT ' .. (layout or '0')
  end
  return nil
end

-- read returns nil if the key is free, {err = text} if it is not a string, {err =
-- text, unknown = text} if it is in another layout, and else {left = ms until the
-- expiry, -1 without one}. If holdfast wrote the value there is limit too, and
-- either id, proposer, token, ttl, granted and holder, or group. proposer begins with
-- the '/', or is empty. value is what GET has said, if that
-- is known.
local function read(key, value)
  if value == nil then
    value = redis.pcall('GET', key)
  end
  if not value then
    return nil
  end
  if type(value) == 'table' then
    return value
  end
  local lock = { left = redis.call('PTTL', key) }
  local mark, id, proposer, ttl, token, granted, holder =
    string.match(value, '^THIS_LAYOUT (%-?)([0-9a-f]+)(/?[0-9a-f]*) (%d+) (%d+) (%d+) (.*)$')
  if id and #id == 32 and (proposer == '' or #proposer == 33) then
    lock.id, lock.token, lock.ttl, lock.granted, lock.holder, lock.limit = mark .. id, token, tonumber(ttl), granted, holder, 0
    lock.proposer = proposer
    return lock
  end
  local group, limit = string.match(value, '^THIS_LAYOUT %*([0-9a-f]+) (%d+)$')
  if group and #group == 32 then
    lock.group, lock.limit = group, tonumber(limit)
    return lock
  end
  lock.unknown = unknown(value)
  lock.err = lock.unknown
  return lock
end

-- exclusive returns the value of an exclusive lease.
local function exclusive(id, ttl, token, granted, holder)
  return 'THIS_LAYOUT ' .. id .. ' ' .. ttl .. ' ' .. token .. ' ' .. granted .. ' ' .. holder
end

-- write records an exclusive lease that ends in ttl milliseconds, a decimal
-- string.
local function write(key, id, token, granted, ttl, holder)
  return redis.pcall('SET', key, exclusive(id, ttl, token, granted, holder), 'PX', ttl)
end

-- clamp brings an exclusive lease's expiry back to the TTL it was last given.
-- It is further away only if the server's clock went back, or somebody changed
-- it by hand. The holder trusts the lease no longer than that TTL, so this
-- never ends a lease early.
local function clamp(key, lock)
  if lock.id and (lock.left < 0 or lock.left > lock.ttl) then
    redis.call('PEXPIRE', key, lock.ttl)
    lock.left = lock.ttl
  end
end

-- lengthenExclusive makes an exclusive lease last at least ttl milliseconds, a
-- decimal string. It returns an error's text if the server refuses. It moves
-- the expiry first: a server whose memory is full allows that, and then the
-- rest too.
local function lengthenExclusive(key, lock, ttl)
  clamp(key, lock)
  local reply = {}
  if lock.left < tonumber(ttl) then
    reply = redis.pcall('PEXPIRE', key, ttl)
    if lock.ttl ~= tonumber(ttl) and reply == 1 then
      reply = write(key, lock.id .. lock.proposer, lock.token, lock.granted, ttl, lock.holder)
    end
    lock.left, lock.ttl = tonumber(ttl), tonumber(ttl)
  end
  return type(reply) == 'table' and reply.err
end
