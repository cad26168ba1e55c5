-- inspect_rest.lua: reads the leases of a name that has very many, a page in each call. A lease
-- that is live all the time is in at least one page, and perhaps in two.
--
-- KEYS   HOLDERS, DETAIL
-- ARGV   CURSOR, 0 at first; GROUP
-- Reply  {cursor, leases}  leases as in inspect.lua; the cursor is 0 after the last page

if redis.call('HGET', KEYS[DETAIL], 'group') ~= ARGV[GROUP] then
  return { '0', {} }
end
local page = redis.call('HSCAN', KEYS[DETAIL], ARGV[CURSOR], 'COUNT', 256)
local members, records, leases = {}, {}, {}
for i = 1, #page[2], 2 do
  if string.sub(page[2][i], 1, 1) == 'h' then
    members[#members + 1], records[#records + 1] = string.sub(page[2][i], 2), page[2][i + 1]
  end
end
for i, ends in ipairs(#members > 0 and redis.call('ZMSCORE', KEYS[HOLDERS], unpack(members)) or {}) do
  if ends then
    leases[#leases + 1], leases[#leases + 2], leases[#leases + 3] = members[i], ends, records[i]
  end
end
return { page[1], leases }
