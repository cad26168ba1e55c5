-- clock.lua: the server's clock, and numbers as large as its readings. It is put
-- in front of every script that reads the clock.

-- micros returns the server's clock. TIME moves on during a script on some
-- servers: read it once.
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

-- num writes an integer with all its digits, which '..' does not.
local function num(n)
  return string.format('%.0f', n)
end

-- age returns how many us ago a lease was granted, 0 if that is not known. It is
-- negative while a clock that went back has not reached the grant again.
local function age(h)
  return h.granted and micros() - h.granted or 0
end
