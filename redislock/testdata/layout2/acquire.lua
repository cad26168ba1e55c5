-- acquire.lua of layout 2, as it was, put together, without its comments.

local value = redis.pcall('GET', KEYS[1])
do
  local own, id, ttl, holder = ARGV[6 + 1]
  if type(value) == 'string' and ARGV[5] == '0' and ARGV[6 + 3] == '0' and ARGV[6 + 6] == '0' then
    id, ttl, holder = string.match(value, '^2 ([0-9a-f]+) (%d+) %d+ (.*)$')
  end
  local left = id and #id == 32 and id ~= own and redis.call('PTTL', KEYS[1])
  if left and left >= 0 and left <= tonumber(ttl) then
    local detail = KEYS[6]
    local known = redis.call('HMGET', detail, 'layout', 'seen', 'last', 'lasts', 'w' .. own)
    local ours = known[1] == '2'
    local time = redis.call('TIME')
    local clock = string.format('%s%06d', time[1], time[2])
    local now = string.sub(clock, 1, -4)
    local plain = redis.call('EXISTS', detail, detail, KEYS[8]) == (ours and 2 or 0)
      and (not ours or #(known[2] or '') == #now and known[2] <= now)
    if plain and ARGV[4] == '0' then
      return { 0, left, holder, 0 }
    end
    local places = redis.call('ZCARD', KEYS[4])
    if not ours then
      plain = plain and redis.call('EXISTS', KEYS[4], KEYS[5], KEYS[3]) == 0
    elseif known[5] or #(known[3] or '') ~= #clock or known[3] >= clock then
      plain = false
    else
      plain = plain and places > 0 and redis.call('ZCOUNT', KEYS[5], '(' .. now, '+inf') == places
    end
    if plain then
      local ms = ARGV[4]
      local ends = tonumber(now) + tonumber(ms)
      local record = ms .. ' ' .. ARGV[6 + 2] .. ' 0 ' .. ARGV[6 + 4] .. ' 0 0 ' .. now .. ' ' .. ARGV[6] .. ' ' .. ARGV[6 + 7]
      local short = not ours or ends > tonumber(known[4] or 0)
      if short then
        redis.call('HSET', detail, 'w' .. own, record, 'seen', now, 'last', clock, 'lasts', string.format('%.0f', ends + 1000), 'layout', '2')
      else
        redis.call('HSET', detail, 'w' .. own, record, 'seen', now, 'last', clock)
      end
      redis.call('ZADD', KEYS[4], clock, own)
      redis.call('ZADD', KEYS[5], string.format('%.0f', ends), own)
      if short then
        ms = string.format('%.0f', tonumber(ms) + 1000 + 5000)
        redis.call('PEXPIRE', KEYS[4], ms)
        redis.call('PEXPIRE', KEYS[5], ms)
        redis.call('PEXPIRE', detail, ms)
      end
      return { 0, left, holder, places + 1 }
    end
  end
end
local FOREIGN, TURNS, SHARE = true, 250, 150

local function unknown(value)
  local number, id = string.match(value, '^(%d+) %p?([0-9a-f]+) ')
  if not id or #id ~= 32 then
    number, id = '1', string.match(value, '^%-?([0-9a-f]+) %d+ %d+ ') or string.match(value, '^%*([0-9a-f]+) %d+$')
  end
  return id and #id == 32 and number ~= '2' and 'LAYOUT ' .. number or nil
end

local function unknownDetail(detail, layout)
  if layout ~= '2' and redis.call('EXISTS', detail) == 1 then
    return 'LAYOUT ' .. (layout or '1')
  end
  return nil
end

local function read(key, value)
  if value == nil then
    value = redis.pcall('GET', key)
  end
  if not value then
    return nil
  end
  if type(value) == 'table' then
    return value
  end
  local lock = { left = redis.call('PTTL', key) }
  local mark, id, ttl, token, holder = string.match(value, '^2 (%-?)([0-9a-f]+) (%d+) (%d+) (.*)$')
  if id and #id == 32 then
    lock.id, lock.token, lock.ttl, lock.holder, lock.limit = mark .. id, token, tonumber(ttl), holder, 0
    return lock
  end
  local group, limit = string.match(value, '^2 %*([0-9a-f]+) (%d+)$')
  if group and #group == 32 then
    lock.group, lock.limit = group, tonumber(limit)
    return lock
  end
  lock.unknown = unknown(value)
  lock.err = lock.unknown
  return lock
end

local function exclusive(id, ttl, token, holder)
  return '2 ' .. id .. ' ' .. ttl .. ' ' .. token .. ' ' .. holder
end

local function write(key, id, token, ttl, holder)
  return redis.pcall('SET', key, exclusive(id, ttl, token, holder), 'PX', ttl)
end

local function clamp(key, lock)
  if lock.id and (lock.left < 0 or lock.left > lock.ttl) then
    redis.call('PEXPIRE', key, lock.ttl)
    lock.left = lock.ttl
  end
end

local function lengthenExclusive(key, lock, ttl)
  clamp(key, lock)
  local reply = {}
  if lock.left < tonumber(ttl) then
    reply = redis.pcall('PEXPIRE', key, ttl)
    if lock.ttl ~= tonumber(ttl) and reply == 1 then
      reply = write(key, lock.id, lock.token, ttl, lock.holder)
    end
    lock.left, lock.ttl = tonumber(ttl), tonumber(ttl)
  end
  return type(reply) == 'table' and reply.err
end

local clock
local function micros()
  if not clock then
    local time = redis.call('TIME')
    clock = tonumber(time[1]) * 1000000 + tonumber(time[2])
  end
  return clock
end

local function millis()
  return math.floor(micros() / 1000)
end

local function num(n)
  return string.format('%.0f', n)
end

local ROOM = 256
local room = ROOM

local function take(s, list)
  s.more = s.more or #list >= room
  room = room - #list
  return list
end

local function outlast(ends, ...)
  for _, key in ipairs({ ... }) do
    redis.call('PEXPIRE', key, num(math.max(redis.call('PTTL', key), ends - millis() + 5000)))
  end
end

local function fields(mark, list)
  local all = {}
  for i, member in ipairs(list) do
    all[i] = mark .. member
  end
  return all
end

local function writeGroup(s, ends)
  redis.call('SET', s.key, '2 *' .. s.lock.group .. ' ' .. num(s.lock.limit), 'PXAT', ends)
end

local function seal(s)
  local last = redis.call('ZRANGE', s.holders, -1, -1, 'WITHSCORES')[2]
  if redis.call('PEXPIREAT', s.key, last) == 0 then
    writeGroup(s, last)
  end
end

local function holding(s, member)
  local ends = redis.call('ZSCORE', s.holders, member)
  local record = ends and redis.call('HGET', s.detail, 'h' .. member)
  local ttl, token, permits, holder = string.match(record or '', '^(%d+) (%d+) (%d+) (.*)$')
  return ttl and {
    ends = tonumber(ends), ttl = tonumber(ttl), token = token, permits = tonumber(permits), holder = holder,
  }
end

local function describe(h)
  return num(h.ttl) .. ' ' .. h.token .. ' ' .. num(h.permits) .. ' ' .. h.holder
end

local function putShared(s, leases)
  local ends, records, last = {}, { 'layout', '2', 'group', s.lock.group, 'used', num(s.used), 'seen', num(millis()) }, 0
  for _, h in ipairs(leases) do
    ends[#ends + 1], ends[#ends + 2] = num(h.ends), h.member
    records[#records + 1], records[#records + 2] = 'h' .. h.member, describe(h)
    last = math.max(last, h.ends)
  end
  redis.call('HSET', s.detail, unpack(records))
  redis.call('ZADD', s.holders, unpack(ends))
  outlast(last, s.holders, s.detail)
  seal(s)
end

local function beginGroup(s, group, limit)
  s.lock, s.mine, s.used = { group = group, limit = limit }, true, 0
end

local function endGroup(s)
  redis.call('UNLINK', s.holders)
  redis.call('HDEL', s.detail, 'group', 'used')
  if s.mine then
    redis.call('DEL', s.key)
    s.lock, s.mine = nil, false
  end
  s.used = 0
end

local function endShared(s, members, permits)
  redis.call('ZREM', s.holders, unpack(members))
  redis.call('HDEL', s.detail, unpack(fields('h', members)))
  if redis.call('EXISTS', s.holders) == 0 then
    endGroup(s)
    return
  end
  s.used = s.used - permits
  redis.call('HSET', s.detail, 'used', num(s.used))
  seal(s)
end

local function lengthenShared(s, member, h, ttl)
  local ends = millis() + ttl
  if ends <= h.ends then
    return
  end
  if ends > (s.kept or 0) then
    outlast(ends, s.holders, s.detail)
    redis.call('HSET', s.detail, 'seen', num(millis()))
    s.kept = ends
  end
  redis.call('ZADD', s.holders, num(ends), member)
  if h.ttl ~= ttl then
    h.ttl = ttl
    redis.call('HSET', s.detail, 'h' .. member, describe(h))
  end
  h.ends = ends
end

local function readDetail(s)
  local known = redis.call('HMGET', s.detail, 'layout', 'group', 'used', 'seen', 'mend', 'ours', 'alien', 'gap', 'last', 'lasts', 'once')
  local err = unknownDetail(s.detail, known[1])
  if err then
    return err
  end
  local any = redis.call('EXISTS', s.holders) == 1
  s.whole, s.used, s.seen, s.mend = known[1], tonumber(known[3] or 0), tonumber(known[4] or 0), known[5]
  s.ours, s.alien, s.gap = tonumber(known[6]), tonumber(known[7]), tonumber(known[8])
  s.number, s.lasts, s.once = tonumber(known[9] or 0), tonumber(known[10] or 0), known[11]
  s.mine = any and s.lock ~= nil and s.lock.group ~= nil and s.lock.group == known[2]
  s.over = not s.mine and (any or known[2])
  return nil
end

local function amend(s, set, mark, list, records)
  local gone, late = {}, {}
  local ends = #list > 0 and redis.call('ZMSCORE', set, unpack(list)) or {}
  for i, member in ipairs(list) do
    local latest = millis() + tonumber(string.match(records[i], '^%d+') or 0)
    if not ends[i] then
      gone[#gone + 1] = mark .. member
    elseif tonumber(ends[i]) > latest then
      late[#late + 1], late[#late + 2] = num(latest), member
    end
  end
  if #gone > 0 then
    redis.call('HDEL', s.detail, unpack(gone))
  end
  if #late > 0 then
    redis.call('ZADD', set, unpack(late))
  end
end

local function mend(s)
  local cursor, clock = string.match(s.mend or '', '^(%d+) (%d+)$')
  clock = tonumber(clock or 0)
  local back = clock > 0 or s.seen > millis()
  if not s.mend and not back then
    return
  end
  if back then
    cursor, clock = clock > 0 and cursor or nil, math.max(clock, millis())
  end
  redis.call('HDEL', s.detail, 'mend') -- needs no memory; see outlast
  local page = redis.call('HSCAN', s.detail, cursor or '0', 'COUNT', ROOM)
  local members, places = { {}, {} }, { {}, {} }
  for i = 1, #page[2], 2 do
    local field, mark = page[2][i], string.sub(page[2][i], 1, 1)
    local list = mark == 'h' and members or mark == 'w' and places
    if list then
      list[1][#list[1] + 1], list[2][#list[2] + 1] = string.sub(field, 2), page[2][i + 1]
    end
  end
  amend(s, s.holders, 'h', unpack(members))
  amend(s, s.waiters, 'w', unpack(places))
  if page[1] ~= '0' then
    redis.call('HSET', s.detail, 'mend', page[1] .. ' ' .. num(clock))
    s.more = s.more or back
  elseif back then
    s.seen = clock
    redis.call('HSET', s.detail, 'seen', num(clock))
    if s.mine then
      seal(s)
    end
  end
end

local function open(at, value)
  local s = {
    key = KEYS[at + 1], fence = KEYS[at + 2], holders = KEYS[at + 3], queue = KEYS[at + 4],
    waiters = KEYS[at + 5], detail = KEYS[at + 6], record = KEYS[at + 7],
    mine = false, used = 0, places = 0, number = 0, lasts = 0,
  }
  s.lock = read(s.key, value)
  s.busy = redis.call('EXISTS', s.holders, s.queue, s.waiters, s.detail) > 0
  s.unknown = s.lock and s.lock.unknown or s.busy and readDetail(s) or nil
  s.err = s.lock and s.lock.err or s.unknown
  return s
end

local function tell(inbox, id, token)
  redis.pcall('PUBLISH', ARGV[2] .. inbox, id .. ' ' .. token)
end

local function readPlace(id, ends, record)
  local ttl, mode, limit, permits, min, once, since, inbox, holder =
    string.match(ends and record or '', '^(%d+) (%d) (%d+) (%d+) (%d+) (%d) (%d+) (%x*) (.*)$')
  return ttl and {
    id = id, ends = tonumber(ends), ttl = tonumber(ttl), mode = tonumber(mode), limit = tonumber(limit),
    permits = tonumber(permits), min = min, once = once, since = since, inbox = inbox, holder = holder,
  }
end

local function place(s, id)
  local ends = s.places > 0 and redis.call('ZSCORE', s.waiters, id)
  return ends and readPlace(id, ends, redis.call('HGET', s.detail, 'w' .. id))
end

local function places(s, ids)
  local all = {}
  if #ids > 0 then
    local ends, records = redis.call('ZMSCORE', s.waiters, unpack(ids)), redis.call('HMGET', s.detail, unpack(fields('w', ids)))
    for i, id in ipairs(ids) do
      all[i] = readPlace(id, ends[i], records[i]) or false
    end
  end
  return all
end

local function keepPlaces(s, ends)
  if ends > s.lasts then
    s.lasts = ends + 1000
    outlast(s.lasts, s.queue, s.waiters, s.detail)
  elseif s.saved then
    return
  else
    redis.call('HDEL', s.detail, '') -- needs no memory; see outlast
  end
  redis.call('HSET', s.detail, 'seen', num(millis()), 'lasts', num(s.lasts))
  s.saved = true
end

local function writePlace(s, p, ...)
  redis.call('HSET', s.detail, 'w' .. p.id, table.concat({
    num(p.ttl), p.mode, num(p.limit), num(p.permits), p.min, p.once, p.since, p.inbox, p.holder }, ' '), ...)
end

local function givePlace(s, p)
  if s.places == 0 then
    s.lasts = 0 -- the keys are made now
  end
  s.number = num(math.max(micros(), s.number + 1))
  writePlace(s, p, 'layout', '2', 'last', s.number)
  if p.once == '1' then
    redis.call('HSET', s.detail, 'once', '1')
  end
  redis.call('ZADD', s.queue, s.number, p.id)
  s.places = s.places + 1
  redis.call('ZADD', s.waiters, num(p.ends), p.id)
  keepPlaces(s, p.ends) -- now that they are there
end

local function refreshPlace(s, p, ttl, inbox)
  local ends = millis() + ttl
  if ends > p.ends then
    p.ends = ends
    keepPlaces(s, ends)
    redis.call('ZADD', s.waiters, num(ends), p.id)
  else
    ttl = p.ttl
  end
  if p.ttl ~= ttl or p.inbox ~= inbox then
    p.ttl, p.inbox = ttl, inbox
    writePlace(s, p)
  end
end

local function giveUpPlaces(s, ids)
  local n = s.places > 0 and #ids > 0 and redis.call('ZREM', s.queue, unpack(ids)) or 0
  if n > 0 then
    redis.call('ZREM', s.waiters, unpack(ids))
    redis.call('HDEL', s.detail, unpack(fields('w', ids)))
    s.places = s.places - n
  end
end

local function purge(s)
  if not s.busy then
    return
  end
  if not s.whole then -- somebody deleted detail
    redis.call('UNLINK', s.holders, s.queue, s.waiters)
    s.busy = false
    return
  end
  local spoilt = s.over
  if spoilt then
    endGroup(s)
  end
  s.places = redis.call('ZCARD', s.queue)
  if s.places ~= redis.call('ZCARD', s.waiters) then
    redis.call('UNLINK', s.queue, s.waiters)
    s.places, spoilt = 0, true
  end
  if spoilt then
    s.mend = '0 ' .. (string.match(s.mend or '', ' (%d+)$') or '0') -- from the beginning
  end
  mend(s)
  if s.more then
    return
  end
  local over = s.mine and take(s, redis.call('ZRANGEBYSCORE', s.holders, '-inf', num(millis()), 'LIMIT', 0, room)) or {}
  if #over > 0 then
    local permits = 0
    for _, record in ipairs(redis.call('HMGET', s.detail, unpack(fields('h', over)))) do
      permits = permits + tonumber(string.match(record or '', '^%d+ %d+ (%d+) ') or 0)
    end
    endShared(s, over, permits)
  end
  giveUpPlaces(s, s.places > 0 and take(s, redis.call('ZRANGEBYSCORE', s.waiters, '-inf', num(millis()), 'LIMIT', 0, room)) or {})
  if s.mine and s.lock.left < 0 then
    seal(s) -- somebody took the expiry away
  end
end

local function sweep(s)
  if s.busy and not s.mine and s.places == 0 then
    redis.call('UNLINK', s.holders, s.queue, s.waiters, s.detail)
    s.busy = false
  end
end

local function rank(s, id)
  local n = s.places > 0 and redis.call('ZRANK', s.queue, id)
  return n and n + 1 or 0
end

local GLIMPSE, GAP, MEMORY = 2, 20, 60000

local function recent(instant, ms)
  return instant ~= nil and millis() >= instant and millis() - instant < ms
end

local function vacant(s)
  return s.gap and recent(s.gap - GAP, GAP) and s.gap - millis() or 0
end

local function yield(s)
  if not FOREIGN or s.lock or s.places == 0 or vacant(s) > 0 then
    return false
  end
  if not s.ours or s.ours > millis() then
    redis.pcall('HSET', s.detail, 'ours', num(millis()))
    return false
  end
  local seen = recent(s.alien, MEMORY)
  if recent(s.ours, seen and SHARE or TURNS) then
    return false
  end
  local ms = seen and GAP or GLIMPSE
  s.gap = millis() + ms
  redis.pcall('HSET', s.detail, 'ours', num(s.gap), 'gap', num(s.gap))
  local head = place(s, redis.call('ZRANGE', s.queue, 0, 0)[1])
  if head then
    tell(head.inbox, head.id, '0 ' .. num(ms))
  end
  return true
end

local function meet(s)
  if FOREIGN and s.busy then
    redis.pcall('HSET', s.detail, 'ours', num(millis()), 'alien', num(millis()), 'gap', '0')
  end
end

local EXCLUSIVE = 0

local function fits(s, r)
  if not s.lock then
    return true
  end
  return s.mine and r.mode ~= EXCLUSIVE and r.limit == s.lock.limit and s.used + r.permits <= r.limit
end

local function drawToken(s, min)
  local last = s.last or redis.pcall('GET', s.fence) or '0'
  if type(last) == 'table' then
    return nil, redis.error_reply(last.err)
  end
  if not string.match(last, '^%d+$') then
    return nil, { -3 }
  end
  local token = math.max(tonumber(last) + 1, micros(), tonumber(min) + 1)
  if token >= 9007199254740991 then
    return nil, { -3 }
  end
  return num(token)
end

local function rememberToken(s, token)
  redis.call('SET', s.fence, token, 'PXAT', num(math.floor(tonumber(token) / 1000) + tonumber(ARGV[1])))
end

local function putExclusive(s, r, token, ttl, ends)
  local value = exclusive(r.id, num(ttl), token, r.holder)
  if ends then
    redis.call('SET', s.key, value, 'PXAT', num(ends))
  else
    redis.call('SET', s.key, value, 'PX', num(ttl))
  end
end

local function countIn(s, r, token, ttl, ends)
  s.last = token
  if r.mode == EXCLUSIVE then
    s.lock = { left = ends - millis(), id = r.id, token = token, ttl = ttl, holder = r.holder, limit = 0 }
    return
  end
  if not s.lock then
    beginGroup(s, r.id, r.limit)
  end
  s.busy, s.used = true, s.used + r.permits
end

local function grant(s, r, token, ttl)
  local free, ends = not s.lock, millis() + ttl
  rememberToken(s, token)
  countIn(s, r, token, ttl, ends)
  if r.mode == EXCLUSIVE then
    putExclusive(s, r, token, ttl)
    return
  end
  if free then
    writeGroup(s, num(ends))
  end
  putShared(s, { { member = r.id, ends = ends, ttl = ttl, token = token, permits = r.permits, holder = r.holder } })
end

local GRANT = 2

local function nextInLine(s)
  local gone, heirs, notices = {}, {}, {}
  local look, recorded = 1
  while s.places > #gone and room > 0 do
    local ids = redis.call('ZRANGE', s.queue, #gone, #gone + math.min(look, math.ceil(room / GRANT)) - 1)
    for i, p in ipairs(places(s, ids)) do
      local token = '0'
      if p and p.once == '1' and recorded == nil then
        recorded = redis.call('EXISTS', s.record) == 1
      end
      if p and not (p.once == '1' and recorded) then
        if not fits(s, p) then
          return gone, heirs, notices
        end
        token, s.failed = drawToken(s, p.min)
        if not token then
          return gone, heirs, notices
        end
        countIn(s, p, token, p.ttl, p.ends)
        p.member, p.token = p.id, token
        heirs[#heirs + 1] = p
      end
      gone[#gone + 1] = ids[i] -- without p, somebody deleted its record
      if p then
        notices[#notices + 1] = { p.inbox, p.id, token }
      end
    end
    room, look = room - GRANT * #ids, 4 * look
  end
  s.more = s.places > #gone
  return gone, heirs, notices
end

local function serve(s)
  if s.lock and not s.lock.group and not s.once then
    return
  end
  if s.places == 0 or vacant(s) > 0 then
    return
  end
  local free = not s.lock
  local gone, heirs, notices = nextInLine(s)
  giveUpPlaces(s, gone) -- first, because it needs no memory; see outlast
  if #heirs > 0 then
    rememberToken(s, s.last)
    if heirs[1].mode == EXCLUSIVE then
      putExclusive(s, heirs[1], heirs[1].token, heirs[1].ttl, heirs[1].ends)
    else
      if free then
        writeGroup(s, num(heirs[1].ends))
      end
      putShared(s, heirs)
    end
  end
  for _, n in ipairs(notices) do
    tell(n[1], n[2], n[3])
  end
end

local MORE = -6
local function settle(s)
  purge(s)
  if not s.more then
    serve(s)
  end
  if s.more then
    return false
  end
  sweep(s)
  return true
end

local function lease(s, id)
  if s.lock and s.lock.id == id then
    return s.lock
  end
  return s.mine and holding(s, id) or nil
end

local function lengthen(s, id, h, ttl)
  if h == s.lock then
    return lengthenExclusive(s.key, h, num(ttl))
  end
  lengthenShared(s, id, h, ttl)
  seal(s)
  return false
end

local function blocker(s, rank)
  if s.mine then
    local first = redis.call('ZRANGE', s.holders, 0, 0)[1]
    local h = holding(s, first)
    if h then
      return { 0, h.ends - millis(), h.holder, rank }
    end
  end
  if not s.lock then
    return { 0, vacant(s), '', rank }
  end
  if not s.lock.id and not s.lock.group then
    meet(s)
  end
  clamp(s.key, s.lock)
  return { 0, s.lock.left, s.lock.holder or '', rank }
end

local function request(at)
  return {
    id = ARGV[at + 1], mode = tonumber(ARGV[at + 2]), limit = tonumber(ARGV[at + 3]),
    permits = tonumber(ARGV[at + 4]), ttl = tonumber(ARGV[at + 5]), min = ARGV[at + 6],
    holder = ARGV[at + 7],
  }
end

local function repeated(s, r)
  local h = lease(s, r.id)
  if not h then
    return nil
  end
  local err = lengthen(s, r.id, h, r.ttl)
  if err then
    return redis.error_reply(err)
  end
  return { 1, tonumber(h.token) }
end

local function tooFar(r)
  return tonumber(r.min) > micros() + tonumber(ARGV[3])
end

local function refused(s, r)
  if s.failed then
    return s.failed
  end
  local kind = s.lock and s.lock.limit
  if not kind and s.places > 0 then
    local head = place(s, redis.call('ZRANGE', s.queue, 0, 0)[1])
    kind = head and head.limit
  end
  if kind and kind ~= r.limit then
    return { -4, kind }
  end
  if s.places > 0 or not fits(s, r) then
    return blocker(s, 0)
  end
  if tooFar(r) then
    return { -2 }
  end
  local failed
  r.token, failed = drawToken(s, r.min)
  return failed
end

if redis.call('EXISTS', KEYS[8]) == 1 then
  return { -1 }
end

local s = open(0, value)
if s.err then
  return redis.error_reply(s.err)
end
local r = request(6)
if not settle(s) then
  return { MORE }
end

local reply = repeated(s, r)
if reply then
  return reply
end
local record = ARGV[5] == '1' and redis.call('GET', s.record)
if record then
  giveUpPlaces(s, { r.id })
  if not settle(s) then
    return { MORE }
  end
  return { 2, string.sub(record, 33) }
end
reply = refused(s, r)
if reply and reply[1] == 0 and ARGV[4] ~= '0' then
  local p = place(s, r.id)
  if p then
    refreshPlace(s, p, tonumber(ARGV[4]), ARGV[6])
  elseif tooFar(r) then
    return { -2 }
  else
    r.ttl = tonumber(ARGV[4])
    r.ends, r.since, r.once, r.inbox = millis() + r.ttl, num(millis()), ARGV[5], ARGV[6]
    givePlace(s, r)
  end
  reply[4] = rank(s, r.id)
end
if reply then
  return reply
end
grant(s, r, r.token, r.ttl)
return { 1, tonumber(r.token) }
