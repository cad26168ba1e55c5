-- vault_redeem.lua: returns a payload once. It follows vault.lua.
--
-- KEYS   as in vault.lua
-- ARGV   ID of the redeem; GRACE RedeemGrace in ms
-- Reply  {2, payload} if this request may have it, else {state}

local state, by, taker, payload = readToken()
if state == 1 then
  -- A payload must not outlast the record of its token.
  redis.call('PEXPIRE', KEYS[PAYLOAD], math.min(tonumber(ARGV[GRACE]), math.max(redis.call('PTTL', KEYS[ONETIME]), 1)))
  become('redeemed ' .. by .. ' ' .. ARGV[ID])
  return { 2, payload }
end
if state == 2 and payload and taker == ARGV[ID] then
  return { 2, payload } -- INVARIANT I6: a repeat, within RedeemGrace
end
return { state }
