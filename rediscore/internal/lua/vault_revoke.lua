-- vault_revoke.lua: makes a fresh token revoked.
--
-- KEYS   1, 2 as in vault.lua
-- Reply  the state before

local state, by = look()
if state == 1 then
  redis.call('DEL', KEYS[2])
  settle('revoked ' .. by)
end
return state
