-- no_foreign.lua: nobody but holdfast takes these locks. It is put in front of
-- yield.lua, or foreign.lua is.
local FOREIGN = false
