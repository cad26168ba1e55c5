-- vault_peek.lua: reads a token. It follows vault.lua.
--
-- KEYS   as in vault.lua
-- Reply  {1, ms left, payload} if the token is fresh, else {state}

local state, _, _, payload = readToken()
if state == 1 then
  return { 1, redis.call('PTTL', KEYS[PAYLOAD]), payload }
end
return { state }
