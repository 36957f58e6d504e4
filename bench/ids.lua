-- 50 objects on 50 shards, half of them on each host, by one list of IDs.
--
-- Physically: one UNION ALL statement a host, both sent before the first answer is read, as the best
-- application without a proxy would do it.

local client = require("client")

local IDS = 50

-- The shards to ask on a host: neighbours, from a random one on.
local function some_shards(range, count)
   local size = range.last - range.first + 1
   local start = sysbench.rand.uniform(0, size - 1)
   local shards = {}
   for n = 1, count do
      shards[n] = range.first + (start + n) % size
   end
   return shards
end

function event()
   local statements, ids = {}, {}
   for host, range in ipairs(client.hosts) do
      local parts = {}
      for _, shard in ipairs(some_shards(range, IDS / #client.hosts)) do
         local pin = sysbench.rand.uniform(1, sysbench.opt.pins)
         local base = client.base(shard, "pins")
         parts[#parts + 1] =
            ("(SELECT (local_id + %.0f) AS id, data, ts FROM `db%05d`.pins WHERE local_id IN (%d))"):format(base, shard, pin)
         ids[#ids + 1] = ("%.0f"):format(base + pin)
      end
      statements[host] = table.concat(parts, " UNION ALL ")
   end
   if client.physical then
      client.query_all(statements, IDS)
   else
      client.query(1, "SELECT id, data, ts FROM pins WHERE id IN (" .. table.concat(ids, ", ") .. ")", IDS)
   end
end
