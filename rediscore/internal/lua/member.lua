-- member.lua: the functions that the scripts of a quorum's member share. It follows token.lua.
--
-- Besides the keys of names the store has one marker:
--     <memory of the server> <end of the quarantine in ms of its clock>
-- It has no expiry. The memory is named as memory_id returns it.

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

-- info returns the value of field in a section of INFO.
local function info(section, field)
  return string.match(redis.call('INFO', section), field .. ':(%x+)') or error('INFO ' .. section .. ' lacks ' .. field)
end

-- memory_id names the memory of the server. Its run ID changes with every start. The second
-- replication ID changes when a replica is promoted. A server that was a replica may lack leases
-- that it granted before, although its marker came back with the data of its master. A master drops
-- that ID, repl-backlog-ttl after its last replica has left, and lacks nothing because of that.
-- So without it the name is only the beginning of what it was.
local function memory_id()
  return info('server', 'run_id') .. '-' .. string.gsub(info('replication', 'master_replid2'), '^0+$', '')
end

-- quarantined returns how many ms of the quarantine remain. If the marker is missing or is of
-- another memory, a quarantine of length ms begins. A marker that ends later than that, because the
-- clock went back, is shortened.
local function quarantined(marker, length)
  local memory = memory_id()
  local now = millis()
  local latest = now + tonumber(length)
  local by, ends = string.match(redis.call('GET', marker) or '', '^(%S+) (%d+)$')
  ends = tonumber(ends)
  if string.sub(by or '', 1, #memory) ~= memory or ends > latest then
    ends = latest
    redis.call('SET', marker, memory .. ' ' .. num(ends))
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
