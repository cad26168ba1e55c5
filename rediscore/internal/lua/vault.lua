-- vault.lua: one-time tokens. It precedes the other vault scripts.
--
-- KEYS   ONETIME the token, a string that lasts for TTL and Memory:
--            <state> <ID of the deposit>
--            redeemed <ID of the deposit> <ID of the redeem>
--        PAYLOAD, as long as a client can receive it: for the TTL, or for RedeemGrace after the
--        redeem
-- State  0 unknown   1 fresh   2 redeemed   3 revoked   4 expired
--        -1 the key holds another program's value
--
-- The TTL ends when the payload's key expires. So an expired token stays expired at any clock, and
-- no script reads the clock.

local STATES = { fresh = 1, redeemed = 2, revoked = 3 }

-- readToken returns the state, the IDs of the deposit and of the redeem, and the payload if there
-- is one.
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

-- become writes the new state of a token, whose expiry stays. It follows another write, so that a
-- full server does not refuse it.
local function become(text)
  redis.call('SET', KEYS[ONETIME], text, 'KEEPTTL')
end
