-- vault_redeem.lua: hands out a payload once.
--
-- KEYS   1, 2 as in vault.lua
-- ARGV   1 ID of the redeem   2 RedeemGrace in ms
-- Reply  {2, payload} if it is handed out, else {state}

local state, by, taker, payload = look()
if state == 1 then
  -- A payload must not outlive what is known of its token.
  redis.call('PEXPIRE', KEYS[2], math.min(tonumber(ARGV[2]), math.max(redis.call('PTTL', KEYS[1]), 1)))
  settle('redeemed ' .. by .. ' ' .. ARGV[1])
  return { 2, payload }
end
if state == 2 and payload and taker == ARGV[1] then
  return { 2, payload } -- INVARIANT I6: a repeat, within RedeemGrace
end
return { state }
