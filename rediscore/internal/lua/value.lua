-- value.lua: the value of a lock's key. It is the first piece that all full scripts share.
--
-- The key is a string with an expiry, in one of these forms. A value of holdfast begins with the
-- number of the layout, here THIS_LAYOUT:
--     <number> <lease ID> <TTL in ms> <token> <granted> <holder as JSON>
--         one exclusive lease. granted is the clock in us at the grant, which is for people only:
--         a token may be ahead of the clock. A '-' before the lease ID means that the lease has
--         ended and the name is kept closed, so that no lease ID matches it. A '/<proposer>' after
--         the lease ID means that an engine of a quorum has proposed the lease, and that no
--         extend has confirmed it yet
--     <number> *<group> <limit>
--         shared leases (limit 0) or permits (limit above 0), as in state.lua; the key expires
--         with the last of them
--     any other string
--         the lock of a foreign client

-- unknown returns the error of a value in another layout of holdfast, nil for any other value.
-- Such a name is neither free nor a foreign client's (INVARIANT I1): only the version that wrote
-- it can read its keys.
local function unknown(value)
  local number, id = string.match(value, '^(%d+) %p?([0-9a-f]+)[ /]')
  return id and #id == 32 and number ~= 'THIS_LAYOUT' and 'LAYOUT ' .. number or nil
end

-- unknownDetail returns the error of companions whose detail has another layout, else nil; see
-- state.lua.
local function unknownDetail(detail, layout)
  if layout ~= 'THIS_LAYOUT' and redis.call('EXISTS', detail) == 1 then
    return 'LAYOUT ' .. (layout or '0')
  end
  return nil
end

-- read returns the lock, or nil if the key is free. value is the reply of GET if the caller knows
-- it. A lock has
--     left     ms until the expiry, -1 for none
--     limit    if holdfast wrote the value; and either group or the fields of a lease
--     err      the text of the error if the value is not a string, or is in another layout
--     unknown  the same, in the latter case only
-- A lease, exclusive or as in state.lua, has
--     id       the lease ID, as in the key or in holders
--     closed   whether the lease has ended and the name is kept closed
--     left, ttl, mode, limit, permits  as numbers
--     token, granted, holder           as texts
--     ends     when a shared lease expires
--     proposer of an exclusive lease; it begins with '/', or is empty
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
  local left = redis.call('PTTL', key)
  local mark, id, proposer, ttl, token, granted, holder =
    string.match(value, '^THIS_LAYOUT (%-?)([0-9a-f]+)(/?[0-9a-f]*) (%d+) (%d+) (%d+) (.*)$')
  if id and #id == 32 and (proposer == '' or #proposer == 33) then
    return {
      id = mark .. id, closed = mark == '-', proposer = proposer, left = left, ttl = tonumber(ttl), token = token,
      mode = 0, limit = 0, permits = 0, granted = granted, holder = holder,
    }
  end
  local group, limit = string.match(value, '^THIS_LAYOUT %*([0-9a-f]+) (%d+)$')
  if group and #group == 32 then
    return { left = left, group = group, limit = tonumber(limit) }
  end
  local err = unknown(value)
  return { left = left, err = err, unknown = err }
end

-- exclusive returns the value of an exclusive lease.
local function exclusive(id, ttl, token, granted, holder)
  return 'THIS_LAYOUT ' .. id .. ' ' .. ttl .. ' ' .. token .. ' ' .. granted .. ' ' .. holder
end

-- write writes an exclusive lease that ends in ttl ms, a decimal string.
local function write(key, id, token, granted, ttl, holder)
  return redis.pcall('SET', key, exclusive(id, ttl, token, granted, holder), 'PX', ttl)
end

-- clamp shortens an exclusive lease to the TTL that it last had. The lease lasts longer only if
-- the server's clock went back, or a user changed the expiry. The holder trusts the lease no
-- longer than that TTL, so this never ends a lease early.
local function clamp(key, lock)
  if lock.id and (lock.left < 0 or lock.left > lock.ttl) then
    redis.call('PEXPIRE', key, lock.ttl)
    lock.left = lock.ttl
  end
end

-- lengthenExclusive makes an exclusive lease last at least ttl ms, a decimal string. It returns
-- the text of the error if the server refuses. It moves the expiry first: a server whose memory
-- is full accepts that, and after it any write.
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
