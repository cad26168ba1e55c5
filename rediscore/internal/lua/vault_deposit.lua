-- vault_deposit.lua: stores a fresh token.
--
-- KEYS   1, 2 as in vault.lua
-- ARGV   1 ID of the deposit   2 payload   3 TTL in ms   4 TTL and Memory in ms
-- Reply  1 stored, now or by an earlier copy   0 another token is there
--        -1 as in vault.lua

local state, by = look()
if state == -1 then
  return -1
end
if state ~= 0 then
  -- INVARIANT I6: a repeat changes nothing.
  return by == ARGV[1] and 1 or 0
end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
redis.call('SET', KEYS[1], 'fresh ' .. ARGV[1], 'PX', ARGV[4])
return 1
