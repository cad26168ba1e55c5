-- member_renew.lua: lengthens, confirms and repairs many leases of a quorum in one call. It
-- follows member.lua and precedes each.lua.
--
-- KEYS   MARKER; for each lease: LOCK, FENCE, CANCELLED, DETAIL
-- ARGV   TOKEN_MEMORY of the last token in ms; LEAD how far a token may be ahead of the clock, in
--        us; for each lease: ID; TTL in ms; REPAIR 1 or 0; TOKEN, 0 if unknown; QUARANTINE its
--        length in ms; SINCE how long ago the lease was granted, in us; HOLDER as JSON
-- Reply  for each lease: its token, if the lease was lengthened; 0 if there is none; or the text of
--        the error

local function repair(k, a, own)
  local token = tonumber(ARGV[a + TOKEN])
  local last, refusal = lastToken(KEYS[k + FENCE])
  if refusal then
    return refusal.err or 'WRONGTYPE the last token is not a number'
  end
  -- INVARIANT I4: a lease that was withdrawn, or that another client's lease has followed, is
  -- not repaired.
  if last > token or token > micros() + tonumber(ARGV[LEAD]) or redis.call('EXISTS', KEYS[k + CANCELLED]) == 1
    or not own and redis.call('EXISTS', KEYS[k + DETAIL]) == 1 or quarantined(KEYS[MARKER], ARGV[a + QUARANTINE]) > 0 then
    return 0
  end
  return putLease(KEYS[k + LOCK], KEYS[k + FENCE], last, own, ARGV[a + ID], token, tonumber(ARGV[a + SINCE]), ARGV[a + TTL],
    ARGV[a + HOLDER], ARGV[TOKEN_MEMORY]) or token
end

-- confirm lengthens a lease, and removes its proposer, because the client now has the lease. As in
-- lengthenExclusive the expiry is moved first, for a server whose memory is full.
local function confirm(key, own, ttl)
  if own.proposer == '' then
    return lengthenExclusive(key, own, ttl)
  end
  clamp(key, own)
  local ms = num(math.max(own.left, tonumber(ttl)))
  redis.call('PEXPIRE', key, ms)
  return write(key, own.id, own.token, own.granted, ms, own.holder).err
end

local function one(k, a)
  local lock = read(KEYS[k + LOCK])
  if lock and lock.err then
    return lock.err
  end
  local own = lock and lock.id == ARGV[a + ID] and lock
  local has, token, repairs = own and tonumber(own.token), tonumber(ARGV[a + TOKEN]), ARGV[a + REPAIR] == '1'
  if own and (has == token or token == 0 or repairs and has > token) then
    local err = confirm(KEYS[k + LOCK], own, ARGV[a + TTL])
    keepToken(KEYS[k + FENCE], has, math.max(own.left, tonumber(ARGV[a + TTL])), ARGV[TOKEN_MEMORY])
    return err or has
  end
  if lock and not own or not repairs then
    return 0
  end
  if own then
    clamp(KEYS[k + LOCK], own)
  end
  return repair(k, a, own)
end
