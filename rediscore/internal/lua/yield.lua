-- yield.lua: leaves locks free for foreign clients now and then. It follows queue.lua and precedes
-- serve.lua.
--
-- ARGV   FOREIGN 1 if foreign clients may want the locks, else 0
--
-- A foreign client knows no queue. It polls, and gets the lock if the key is free at that instant.
-- While clients of holdfast hand the lock over among themselves, the key is never free. So now and
-- then a release leaves it free for a moment, in which the queue is not served. A poll that fails
-- leaves no trace, so a script cannot know whether a foreign client wants the lock: the moment is
-- short until a foreign client has had the lock.
--
-- In detail, in ms of the server's clock:
--     ours   since when holdfast's clients have handed the lock over among themselves
--     alien  when a foreign client was last seen to hold it
--     gap    until when it is left free

-- holdfast's clients hand the lock over among themselves for TURNS, and then leave it free for
-- GLIMPSE; if a foreign client was seen within MEMORY, for SHARE and GAP.
local GLIMPSE, GAP, MEMORY = 2, 20, 60000

-- recent reports whether now is less than ms after an instant. It is false if the clock went back
-- to before the instant.
local function recent(instant, ms)
  return instant ~= nil and millis() >= instant and millis() - instant < ms
end

-- vacant returns for how many ms the lock is still left free.
local function vacant(s)
  return s.gap and recent(s.gap - GAP, GAP) and s.gap - millis() or 0
end

-- yield leaves a lock that has become free to foreign clients, if it is time for that, and reports
-- whether it does. It sends the head of the queue the time at which to refresh its place.
local function yield(s)
  if ARGV[FOREIGN] ~= '1' or s.lock or s.places == 0 or vacant(s) > 0 then
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
  wake(s, '0 ' .. num(ms))
  return true
end

-- meet records that a foreign client holds the lock while the name has companions. The client has
-- had its turn, so the rest of the gap is not needed.
local function meet(s)
  if ARGV[FOREIGN] == '1' and s.busy then
    redis.pcall('HSET', s.detail, 'ours', num(millis()), 'alien', num(millis()), 'gap', '0')
  end
end
