-- foreign.lua: clients that are not holdfast may want the locks, too. It is put
-- in front of yield.lua, or no_foreign.lua is.
local FOREIGN = true
