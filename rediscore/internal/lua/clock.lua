-- clock.lua: the server's clock, and integers as large as its readings. The full scripts begin
-- with value.lua and this piece.

-- micros returns the server's clock in us. It reads the clock once, because on some servers TIME
-- advances during a script.
local clock
local function micros()
  if not clock then
    local time = redis.call('TIME')
    clock = tonumber(time[1]) * 1000000 + tonumber(time[2])
  end
  return clock
end

-- millis returns the server's clock in ms.
local ms
local function millis()
  ms = ms or math.floor(micros() / 1000)
  return ms
end

-- num returns an integer as text with all its digits; '..' may not write all of them.
local function num(n)
  return string.format('%.0f', n)
end

-- age returns how many us ago a lease was granted, or 0 if that is unknown. It is negative if the
-- clock went back to before the grant.
local function age(h)
  return h.granted and micros() - h.granted or 0
end
