-- break.lua: ends leases that others hold.
--
-- KEYS   as in queue.lua, and BROKEN, what was broken
-- ARGV   as in queue.lua, and
--        ID of the break; TOKEN; OLDER 1 to end leases with smaller tokens as
--        well, else 0; CLOSED 1 to end what is over and kept closed, 0 for live
--        leases; FROM where to go on, 0 at first
--        BREAK_MEMORY ms to remember it; MOST_BREAKS how many leases to remember
--        ABOUT author and reason as JSON; MESSAGE what to tell the holders
--        LIFT how far ahead of the clock in us the last token may be lifted to
--        the odd number above the token; 0 not to lift it
-- Reply  {0, '', clock in ms, lines}: the records of what this break has ended,
--        now or before, as they are kept
--        {1, where to go on, clock in ms, lines}  and there is more to do: send it
--        again
--        {-1}  a foreign client has the lock; nothing was changed
--
-- What was broken is kept in one string, the latest last, for each lease
--     <ID of the break> <lease ID> <token> <permits> <clock in ms> <mode> <limit>
--     <clock of the grant in us> <tab> <author and reason as JSON> <tab> <holder as JSON> <newline>

local MOST = 128 -- leases in one call
local id, token, older, closed = ARGV[ID], tonumber(ARGV[TOKEN]), ARGV[OLDER] == '1', ARGV[CLOSED] == '1'

local s = open(0)
if s.err then
  return redis.error_reply(s.err)
end
if s.lock and not s.lock.limit then
  return { -1 }
end
purge(s)
if s.more then
  return { 1, ARGV[FROM], num(millis()), '' } -- what is over comes first
end
s.ends, s.about = 'b', '\t' .. ARGV[ABOUT]

-- hit tells whether the break is about a lease with this token.
local function hit(t, released)
  t = tonumber(t)
  return t and released == closed and (t == token or older and t < token)
end

local ended, next, more = {}, '0', false
-- takeAway ends a lease. INVARIANT I4: only one that is there, with its token.
local function takeAway(member, h)
  h.limit = h ~= s.lock and s.lock.limit or 0
  h.mode = h == s.lock and 0 or h.limit == 0 and 1 or 2
  endLease(s, member, h)
  h.member = string.match(member, '^%-?(%x+)')
  ended[#ended + 1] = h
end
if s.lock and s.lock.id then
  if hit(s.lock.token, string.sub(s.lock.id, 1, 1) == '-') then
    takeAway(s.lock.id, s.lock)
  end
elseif s.mine then
  local page = redis.call('HSCAN', s.detail, ARGV[FROM], 'COUNT', MOST)
  next = page[1]
  for i = 1, #page[2], 2 do
    local member = string.match(page[2][i], '^h(.+)$')
    local h = member and s.mine and hit(string.match(page[2][i + 1], '^%d+ (%d+) '), string.sub(member, 1, 1) == '-')
      and holding(s, member)
    if h and #ended == MOST then
      next, more = ARGV[FROM], true -- the same page again, without those that are gone
      break
    end
    if h then
      takeAway(member, h)
    end
  end
  more = more or next ~= '0'
end

table.sort(ended, function(a, b) return tonumber(a.token) < tonumber(b.token) end)
local kept, own = {}, {}
local known = redis.pcall('GET', KEYS[BROKEN])
for line in string.gmatch(type(known) == 'string' and known or '', '[^\n]+') do
  local by, clock = string.match(line, '^(%x+) %x+ %d+ %d+ (%d+) %d %d+ %d+\t')
  if by and tonumber(clock) > millis() - tonumber(ARGV[BREAK_MEMORY]) then
    kept[#kept + 1] = line
    if by == id then
      own[#own + 1] = line -- INVARIANT I6: a repeat, or more of the same
    end
  end
end
for _, h in ipairs(ended) do
  local line = id .. ' ' .. h.member .. ' ' .. h.token .. ' ' .. num(h.permits or 0) .. ' ' .. num(millis())
    .. ' ' .. h.mode .. ' ' .. num(h.limit) .. ' ' .. h.granted
    .. '\t' .. ARGV[ABOUT] .. '\t' .. string.gsub(h.holder or '', '[\t\n]', ' ')
  kept[#kept + 1], own[#own + 1] = line, line
  tell('all', h.member, ARGV[MESSAGE])
end
if #ended > 0 then
  -- It is done, whether or not it can be remembered. INVARIANT I11.
  redis.pcall('SET', KEYS[BROKEN], table.concat(kept, '\n', math.max(1, #kept - tonumber(ARGV[MOST_BREAKS]) + 1)), 'PX', ARGV[BREAK_MEMORY])
end

local lift = token + 1 - token % 2
if ARGV[LIFT] ~= '0' and token <= micros() + tonumber(ARGV[LIFT]) then
  -- A member of a quorum must not repair the lease: INVARIANT I4.
  local last = redis.pcall('GET', s.fence) or '0'
  if type(last) == 'string' and lift > (tonumber(last) or lift) then
    pcall(rememberToken, s, lift)
  end
end

-- It is done, whatever becomes of those who wait.
pcall(serve, s)
more = more or s.more
sweep(s)
return { more and 1 or 0, next, num(millis()), table.concat(own, '\n') }
