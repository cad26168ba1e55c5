-- member.lua: what the scripts of a quorum's member share. It follows token.lua.
--
-- Besides the keys of names the store has one marker:
--     <run ID of the server> <end of the quarantine in ms of its clock>
-- It has no expiry. The run ID, from INFO server, changes with every start of the server.

-- readName returns the lock, nil if the name is free, and its last token. If one of them cannot
-- be read, the third value is the reply.
local function readName(key, fence)
  local lock = read(key)
  if lock and lock.err then
    return nil, nil, redis.error_reply(lock.err)
  end
  return lock, lastToken(fence)
end

-- raise makes the last token at least token. held is the token of the lease in the lock's key,
-- nil for none, and ms is how long that lease lasts.
local function raise(fence, last, token, held, ms, memory)
  if token > last then
    putToken(fence, token, ms, memory)
  elseif held then
    keepToken(fence, held, ms, memory)
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

-- quarantined returns how many ms of the quarantine remain. If the marker is missing or is of
-- another run, a quarantine of length ms begins. A marker that ends later than that, because the
-- clock went back, is shortened.
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

-- putLease writes the lease id with token, which was granted since us ago. The lease lasts for
-- ttl ms, or for the rest of own, the lease that it replaces, if that is longer. The proposer
-- follows the ID unless the lease is confirmed.
local function putLease(key, fence, last, own, id, token, since, ttl, holder, memory)
  local ms = math.max(tonumber(ttl), own and own.left or 0)
  raise(fence, last, token, token, ms, memory)
  local reply = write(key, id, num(token), num(math.max(micros() - since, 0)), num(ms), holder)
  return type(reply) == 'table' and reply.err
end
