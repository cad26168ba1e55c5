-- break.lua: ends leases of other holders. It follows end.lua.
--
-- KEYS   as in queue.lua; BROKEN has the records of broken leases
-- ARGV   as in queue.lua; ID of the break; TOKEN; OLDER 1 to end leases with smaller tokens as well,
--        else 0; CLOSED 1 to end leases that were released and keep the name closed, 0 to end live
--        leases; FROM the cursor, 0 at first; BREAK_MEMORY ms to keep a record; MOST_BREAKS how
--        many records to keep; ABOUT author and reason as JSON; MESSAGE to the holders; LIFT how
--        far the odd number above TOKEN may be ahead of the clock, in us, to become the last
--        token, 0 to leave the last token
-- Reply  {0, '', clock in ms, lines}      the records of all leases that this break has ended, in
--                                         this call or an earlier one
--        {1, cursor, clock in ms, lines}  the same, and the break has not finished; the client
--                                         sends it again with this cursor
--        {-1}                             a foreign client holds the lock; nothing has changed
--
-- BROKEN is a string of lines, one for each lease, the latest last:
--     <ID of the break> <lease ID> <token> <permits> <clock in ms> <mode> <limit>
--     <clock of the grant in us> <tab> <author and reason as JSON> <tab> <holder as JSON> <newline>

local MOST = 128 -- leases that one call ends
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
  return { 1, ARGV[FROM], num(millis()), '' } -- expired leases are ended first
end
s.ends, s.about = 'b', '\t' .. ARGV[ABOUT]

-- hit reports whether the break ends a lease with this token.
local function hit(t, released)
  t = tonumber(t)
  return t and released == closed and (t == token or older and t < token)
end

local ended, next, more = {}, '0', false
-- takeAway ends a lease. INVARIANT I4: only a live lease, with its own token.
local function takeAway(h)
  endLease(s, h)
  ended[#ended + 1] = h
end
if s.lock and s.lock.id then
  if hit(s.lock.token, s.lock.closed) then
    takeAway(s.lock)
  end
elseif s.mine then
  local page = redis.call('HSCAN', s.detail, ARGV[FROM], 'COUNT', MOST)
  next = page[1]
  for i = 1, #page[2], 2 do
    local member = string.match(page[2][i], '^h(.+)$')
    local h = member and s.mine and hit(string.match(page[2][i + 1], '^%d+ (%d+) '), string.sub(member, 1, 1) == '-')
      and holding(s, member)
    if h and #ended == MOST then
      next, more = ARGV[FROM], true -- the next call reads the same page, without the ended leases
      break
    end
    if h then
      takeAway(h)
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
      own[#own + 1] = line -- INVARIANT I6: of an earlier copy of this request, or an earlier part
    end
  end
end
for _, h in ipairs(ended) do
  local lost = string.match(h.id, '^%-?(%x+)')
  local line = id .. ' ' .. lost .. ' ' .. h.token .. ' ' .. num(h.permits) .. ' ' .. num(millis())
    .. ' ' .. h.mode .. ' ' .. num(h.limit) .. ' ' .. h.granted
    .. '\t' .. ARGV[ABOUT] .. '\t' .. string.gsub(h.holder, '[\t\n]', ' ')
  kept[#kept + 1], own[#own + 1] = line, line
  tell('all', lost, ARGV[MESSAGE])
end
if #ended > 0 then
  -- The leases have ended, even if the record cannot be written. INVARIANT I11.
  redis.pcall('SET', KEYS[BROKEN], table.concat(kept, '\n', math.max(1, #kept - tonumber(ARGV[MOST_BREAKS]) + 1)), 'PX', ARGV[BREAK_MEMORY])
end

local lift = token + 1 - token % 2
if ARGV[LIFT] ~= '0' and token <= micros() + tonumber(ARGV[LIFT]) then
  -- A member of a quorum must not repair the lease: INVARIANT I4. A full server refuses only the
  -- first write of a script, so if it refuses this one, nothing was done.
  local last = lastToken(s.fence)
  if last and lift > last then
    rememberToken(s, lift)
  end
end

-- The leases have ended, even if the hand-over fails.
pcall(serve, s)
more = more or s.more
sweep(s)
return { more and 1 or 0, next, num(millis()), table.concat(own, '\n') }
