-- member.lua: what the scripts of a quorum's member have in common. It is put
-- behind value.lua and clock.lua.
--
-- Next to the keys of a name the store has a marker, one for all names:
--     <run ID of the server> <end of the quarantine in ms of its clock>
-- It has no expiry. INFO server tells the run ID, which changes with every
-- start of the server.

-- counter returns the last token of a name as a number, or an error's text.
local function counter(fence)
  local last = redis.pcall('GET', fence) or '0'
  if type(last) == 'table' then
    return nil, last.err
  end
  if not string.match(last, '^%d+$') then
    return nil, 'FENCE'
  end
  return tonumber(last)
end

-- readName returns the lock, or nil, and its counter; or as a third value the
-- reply that says why one of them cannot be read.
local function readName(key, fence)
  local lock = read(key)
  if lock and lock.err then
    return nil, nil, redis.error_reply(lock.err)
  end
  local last, err = counter(fence)
  if err then
    return nil, nil, err == 'FENCE' and { -3 } or redis.error_reply(err)
  end
  return lock, last
end

-- raise makes the counter at least token. The lease in the lock's key has the token of,
-- nil if there is none, and lasts for ms.
local function raise(fence, last, token, of, ms, memory)
  if token > last then
    putToken(fence, token, ms, memory)
  elseif of then
    keepToken(fence, of, ms, memory)
  end
end

-- this_run returns the run ID of the server.
local function this_run()
  local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
  if not run then
    error('the server does not tell its run ID')
  end
  return run
end

-- quarantined returns how many ms of the quarantine remain. A marker that is
-- missing, or of another run, begins one of length ms. One that ends later than
-- that, because the clock went back, is brought back.
local function quarantined(marker, length)
  local run = this_run()
  local now = millis()
  local latest = now + tonumber(length)
  local by, ends = string.match(redis.call('GET', marker) or '', '^(%x+) (%d+)$')
  ends = tonumber(ends)
  if by ~= run or ends > latest then
    ends = latest
    redis.call('SET', marker, run .. ' ' .. num(ends))
  end
  return math.max(ends - now, 0)
end

-- putLease makes id's lease the one with token, which was granted since us ago, for
-- ttl ms or for what is left of the lease own that it replaces, if that is more. The ID
-- has its proposer behind it, unless the lease is confirmed.
local function putLease(key, fence, last, own, id, token, since, ttl, holder, memory)
  local ms = math.max(tonumber(ttl), own and own.left or 0)
  raise(fence, last, token, token, ms, memory)
  local reply = write(key, id, num(token), num(math.max(micros() - since, 0)), num(ms), holder)
  return type(reply) == 'table' and reply.err
end
