-- vault.lua: one-time tokens. It is put in front of the scripts that keep them.
--
-- KEYS   ONETIME the token, a string that lasts for TTL and Memory:
--              <state> <ID of the deposit>
--          or, with state 'redeemed',
--              redeemed <ID of the deposit> <ID of the redeem>
--        PAYLOAD as it is, which is there as long as somebody can be handed it:
--          for the TTL, or RedeemGrace after the redeem
-- State  0 unknown   1 fresh   2 redeemed   3 revoked   4 expired
--        -1 the key holds something that is not ours
--
-- The payload's own expiry is what ends the TTL. So a token that was expired
-- stays so whatever the clock does, and no script needs to read it.

local STATES = { fresh = 1, redeemed = 2, revoked = 3 }

-- readToken returns the state, the IDs of the deposit and of the redeem, and
-- the payload if there is one.
local function readToken()
  local token = redis.call('GET', KEYS[ONETIME])
  if not token then
    return 0
  end
  local word, by, taker = string.match(token, '^(%l+) (%x+) ?(%x*)$')
  local state = STATES[word] or -1
  local payload = redis.call('GET', KEYS[PAYLOAD])
  if state == 1 and not payload then
    state = 4
  end
  return state, by, taker, payload
end

-- become writes down what has become of a token, which stays as long as it was
-- to. It comes after another write, so that a full server does not refuse it.
local function become(text)
  redis.call('SET', KEYS[ONETIME], text, 'KEEPTTL')
end
