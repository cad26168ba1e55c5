-- vault_peek.lua: reads a token.
--
-- KEYS   1, 2 as in vault.lua
-- Reply  {1, ms left, payload} if it is fresh, else {state}

local state, _, _, payload = look()
if state == 1 then
  return { 1, redis.call('PTTL', KEYS[2]), payload }
end
return { state }
