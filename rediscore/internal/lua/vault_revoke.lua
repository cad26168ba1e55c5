-- vault_revoke.lua: revokes a fresh token. It follows vault.lua.
--
-- KEYS   as in vault.lua
-- Reply  the state before

local state, by = readToken()
if state == 1 then
  redis.call('DEL', KEYS[PAYLOAD])
  become('revoked ' .. by)
end
return state
