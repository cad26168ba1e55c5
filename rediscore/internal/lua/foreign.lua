-- foreign.lua: clients that are not holdfast may want the locks, too. It is put in
-- front of the scripts that hand a lock over, or no_foreign.lua is. TURNS and SHARE
-- are ms; see yield.lua.
local FOREIGN, TURNS, SHARE = true, 250, 150
