-- value.lua: what a lock's key holds. It is put in front of every script.
--
-- A lock that holdfast holds is a string key with an expiry:
--     <lease ID> <token> <TTL in ms> <holder as JSON>
-- with a '-' before the lease ID if the lease is over and the name is kept
-- closed, so that no lease ID matches it. Any other string is the lock of a
-- foreign client.

-- read returns nil if the key is free, {err = text} if it is not a string,
-- and else {left = ms until the expiry, -1 without one}, with id, token, ttl
-- and holder too if holdfast wrote the value.
local function read(key)
  local value = redis.pcall('GET', key)
  if not value then
    return nil
  end
  if type(value) == 'table' then
    return value
  end
  local lock = { left = redis.call('PTTL', key) }
  local mark, id, token, ttl, holder = string.match(value, '^(%-?)([0-9a-f]+) (%d+) (%d+) (.*)$')
  if id and #id == 32 then
    lock.id, lock.token, lock.ttl, lock.holder = mark .. id, token, tonumber(ttl), holder
  end
  return lock
end

-- write records a lease that ends in ttl milliseconds, a decimal string.
local function write(key, id, token, ttl, holder)
  return redis.pcall('SET', key, id .. ' ' .. token .. ' ' .. ttl .. ' ' .. holder, 'PX', ttl)
end

-- clamp brings a lease's expiry back to the TTL it was last given. It is
-- further away only if the server's clock went back, or somebody changed it
-- by hand. The holder trusts the lease no longer than that TTL, so this never
-- ends a lease early.
local function clamp(key, lock)
  if lock.id and (lock.left < 0 or lock.left > lock.ttl) then
    redis.call('PEXPIRE', key, lock.ttl)
    lock.left = lock.ttl
  end
end

-- lengthen makes a lease last at least ttl milliseconds, a decimal string. It
-- returns an error's text if the server refuses. A renewal by the usual TTL
-- only moves the expiry: that is allowed when the server's memory is full.
local function lengthen(key, lock, ttl)
  clamp(key, lock)
  local reply = {}
  if lock.left < tonumber(ttl) then
    if lock.ttl == tonumber(ttl) then
      reply = redis.pcall('PEXPIRE', key, ttl)
    else
      reply = write(key, lock.id, lock.token, ttl, lock.holder)
    end
  end
  return type(reply) == 'table' and reply.err
end
