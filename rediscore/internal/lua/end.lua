-- end.lua: how a lease ends before it expires. It follows serve.lua, and precedes release.lua,
-- complete.lua and break.lua.

-- endLease ends a live lease, which lease has returned.
local function endLease(s, id, h)
  local event = ending(s, s.ends, h)
  if h == s.lock then
    redis.call('DEL', s.key)
    s.lock = nil
  else
    endShared(s, { id }, h.permits)
  end
  note(s, { event })
end

-- serveOrYield hands a lock that may have become free to those who wait, or
-- leaves it free for others first. The lease is over, whatever becomes of
-- that.
local function serveOrYield(s)
  if not yield(s) then
    pcall(serve, s)
  end
end

-- keepClosed ends a live lease and keeps its share of the name closed for ms.
-- It returns an error's text if the server refuses.
local function keepClosed(s, id, h, ms)
  local event = ending(s, s.ends, h)
  if h == s.lock then
    local err = write(s.key, '-' .. id, h.token, h.granted, num(ms), h.holder).err
    if not err then
      keepToken(s.fence, h.token, ms, ARGV[TOKEN_MEMORY])
      s.lock = read(s.key)
      note(s, { event })
    end
    return err
  end
  redis.call('ZREM', s.holders, id)
  redis.call('HDEL', s.detail, 'h' .. id)
  h.ends, h.ttl = millis() + ms, ms
  h.member = '-' .. id .. ' ' .. h.token
  s.lock.left = math.max(s.lock.left, ms)
  putShared(s, { h })
  keepToken(s.fence, h.token, ms, ARGV[TOKEN_MEMORY])
  note(s, { event })
end
