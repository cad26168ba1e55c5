-- vault_redeem.lua: hands out a payload once.
--
-- KEYS   as in vault.lua
-- ARGV   ID of the redeem; GRACE RedeemGrace in ms
-- Reply  {2, payload} if it is handed out, else {state}

local state, by, taker, payload = readToken()
if state == 1 then
  -- A payload must not outlive what is known of its token.
  redis.call('PEXPIRE', KEYS[PAYLOAD], math.min(tonumber(ARGV[GRACE]), math.max(redis.call('PTTL', KEYS[ONETIME]), 1)))
  become('redeemed ' .. by .. ' ' .. ARGV[ID])
  return { 2, payload }
end
if state == 2 and payload and taker == ARGV[ID] then
  return { 2, payload } -- INVARIANT I6: a repeat, within RedeemGrace
end
return { state }
