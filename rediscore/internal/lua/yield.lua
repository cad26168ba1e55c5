-- yield.lua: turns for clients that are not holdfast. It follows queue.lua and precedes
-- serve.lua.
--
-- ARGV   FOREIGN 1 if such clients may want the locks, else 0
--
-- Such a client knows no queue: it polls, and gets the lock if the key is free at that
-- instant. While clients of holdfast hand the lock on, it never is. So a release leaves it
-- free for a moment now and then, and no client of holdfast is granted it before the moment
-- has passed. A poll that fails leaves no trace, so we cannot know whether another client
-- wants the lock: the moment is short until one of them was seen to have it.
--
-- In detail, in ms of the server's clock:
--     ours   since when we have handed the lock on among ourselves
--     alien  when another client was last seen to have it
--     gap    until when it is left free

-- We hand the lock on among ourselves for TURNS, and leave it free for GLIMPSE;
-- if others were seen within MEMORY, for SHARE and GAP.
local GLIMPSE, GAP, MEMORY = 2, 20, 60000

-- recent tells whether now is less than ms behind an instant, which a clock
-- that went back has not reached yet.
local function recent(instant, ms)
  return instant ~= nil and millis() >= instant and millis() - instant < ms
end

-- vacant returns for how many ms the lock is still left free for others.
local function vacant(s)
  return s.gap and recent(s.gap - GAP, GAP) and s.gap - millis() or 0
end

-- yield leaves a lock that has become free to others, if it is time for that,
-- and reports whether it does. The head of the queue is told when to look.
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

-- meet notes that another client has the lock while some of ours wait. It has
-- had its turn: what is left of the gap is not needed.
local function meet(s)
  if ARGV[FOREIGN] == '1' and s.busy then
    redis.pcall('HSET', s.detail, 'ours', num(millis()), 'alien', num(millis()), 'gap', '0')
  end
end
