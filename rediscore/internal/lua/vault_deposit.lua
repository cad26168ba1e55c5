-- vault_deposit.lua: stores a fresh token. It follows vault.lua.
--
-- KEYS   as in vault.lua
-- ARGV   ID of the deposit; DATA the payload; TTL in ms; MEMORY TTL and Memory in ms
-- Reply  1   the token was stored, by this request or an earlier copy
--        0   another token is stored
--        -1  as in vault.lua

local state, by = readToken()
if state == -1 then
  return -1
end
if state ~= 0 then
  -- INVARIANT I6: a repeat changes nothing.
  return by == ARGV[ID] and 1 or 0
end
redis.call('SET', KEYS[PAYLOAD], ARGV[DATA], 'PX', ARGV[TTL])
redis.call('SET', KEYS[ONETIME], 'fresh ' .. ARGV[ID], 'PX', ARGV[MEMORY])
return 1
