-- member_renew.lua: lengthens many leases of a quorum in one call, and repairs
-- them.
--
-- KEYS   1 the marker; for each lease four: the lock, its last token, the lease
--        ID's tombstone, the queue
-- ARGV   1 memory of the last token in ms   2 greatest lead of a token over the
--        clock in us; for each lease six: lease ID, TTL in ms, 1 to repair it or
--        0, token, length of a quarantine in ms, holder as JSON
-- Reply  for each lease: the token of the live lease, which lasts on; 0 there is
--        none; or the text of the server's error

local function repair(k, a, own)
  local token = tonumber(ARGV[a + 3])
  local last, err = counter(KEYS[k + 1])
  if err then
    return err == 'FENCE' and 'WRONGTYPE the last token is no number' or err
  end
  -- INVARIANT I4: a lease that somebody else had in between, or that was
  -- withdrawn, does not come back.
  if last > token or token > micros() + tonumber(ARGV[2]) or redis.call('EXISTS', KEYS[k + 2]) == 1
    or not own and redis.call('EXISTS', KEYS[k + 3]) == 1 or quarantined(KEYS[1], ARGV[a + 4]) > 0 then
    return 0
  end
  return record(KEYS[k], KEYS[k + 1], last, own, ARGV[a], token, ARGV[a + 1], ARGV[a + 5], ARGV[1]) or token
end

local function renew(k, a)
  local lock = read(KEYS[k])
  if lock and lock.err then
    return lock.err
  end
  local own = lock and lock.id == ARGV[a] and lock
  if own and (ARGV[a + 2] == '0' or tonumber(own.token) >= tonumber(ARGV[a + 3])) then
    return lengthen(KEYS[k], own, ARGV[a + 1]) or tonumber(own.token)
  end
  if lock and not own or ARGV[a + 2] == '0' then
    return 0
  end
  if own then
    clamp(KEYS[k], own)
  end
  return repair(k, a, own)
end

local replies = {}
for i = 1, (#KEYS - 1) / 4 do
  -- One that fails must not spoil the others.
  local ok, reply = pcall(renew, 4 * i - 2, 6 * i - 3)
  replies[i] = ok and reply or type(reply) == 'table' and reply.err or tostring(reply)
end
return replies
