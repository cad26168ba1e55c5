-- end.lua: ends a lease before it expires. It follows serve.lua, and precedes release.lua,
-- complete.lua and break.lua.

-- endLease ends a live lease that the function lease has returned.
local function endLease(s, h)
  local event = ending(s, s.ends, h)
  if h == s.lock then
    redis.call('DEL', s.key)
    s.lock = nil
  else
    endShared(s, { h.id }, h.permits)
  end
  note(s, { event })
end

-- serveOrYield serves the queue after a lease has ended, or leaves the lock free for foreign
-- clients first. The lease has ended, even if the hand-over fails.
local function serveOrYield(s)
  if not yield(s) then
    pcall(serve, s)
  end
end

-- keepClosed ends a live lease, and keeps its share of the name closed for ms. It returns the
-- text of the error if the server refuses.
local function keepClosed(s, h, ms)
  local event = ending(s, s.ends, h)
  if h == s.lock then
    local err = write(s.key, '-' .. h.id, h.token, h.granted, num(ms), h.holder).err
    if err then
      return err
    end
    s.lock = read(s.key)
  else
    redis.call('ZREM', s.holders, h.id)
    redis.call('HDEL', s.detail, 'h' .. h.id)
    h.id, h.ends, h.ttl = '-' .. h.id .. ' ' .. h.token, millis() + ms, ms
    s.lock.left = math.max(s.lock.left, ms)
    putShared(s, { h })
  end
  keepToken(s.fence, h.token, ms, ARGV[TOKEN_MEMORY])
  note(s, { event })
end
