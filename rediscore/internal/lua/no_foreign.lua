-- no_foreign.lua: nobody but holdfast takes these locks. It is put in front of the
-- scripts that hand a lock over, or foreign.lua is.
local FOREIGN, TURNS, SHARE = false
