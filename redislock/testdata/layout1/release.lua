-- Of layout 1; it is put behind common.lua.
local function endLease(s, id, h)
  if h == s.lock then
    redis.call('DEL', s.key)
    s.lock = nil
  else
    endShared(s, { id }, h.permits)
  end
end
local function serveOrYield(s)
  if not yield(s) then
    pcall(serve, s)
  end
end
local function keepClosed(s, id, h, ms)
  if h == s.lock then
    local err = write(s.key, '-' .. id, h.token, num(ms), h.holder).err
    if not err then
      s.lock = read(s.key)
    end
    return err
  end
  redis.call('ZREM', s.holders, id)
  redis.call('HDEL', s.detail, 'h' .. id)
  h.ends, h.ttl = millis() + ms, ms
  h.member = '-' .. id .. ' ' .. h.token
  putShared(s, { h })
end
local id, remember = ARGV[3], ''
if ARGV[5] ~= '0' then
  remember = redis.pcall('SET', KEYS[8], '', 'PX', ARGV[5]).err or ''
end
local s = open(0)
purge(s)
if s.more then
  return { 0, remember, 1 }
end
local h = lease(s, id)
if h and ARGV[4] ~= '0' then
  local err = keepClosed(s, id, h, tonumber(ARGV[4]))
  if err then
    return redis.error_reply(err)
  end
elseif h then
  endLease(s, id, h)
end
giveUpPlaces(s, { id })
serveOrYield(s)
if h and ARGV[4] ~= '0' and s.places > 0 then
  local p = place(s, redis.call('ZRANGE', s.queue, 0, 0)[1])
  if p then
    tell(p.inbox, p.id, '0')
  end
end
sweep(s)
return { h and 1 or 0, remember, s.more and 1 or 0 }
