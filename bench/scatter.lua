-- All rows of a sharded table, 100,000 of `users` unless told otherwise: no condition, so every shard is asked.
--
-- Physically: one UNION ALL statement a host, both sent before the first answer is read.

local client = require("client")

local statements

local function union(range)
   local parts = {}
   for shard = range.first, range.last do
      local name = sysbench.opt.table
      local base = client.base(shard, name)
      parts[#parts + 1] = ("(SELECT (local_id + %.0f) AS id, data, ts FROM `db%05d`.%s)"):format(base, shard, name)
   end
   return table.concat(parts, " UNION ALL ")
end

function event()
   if not client.physical then
      return client.query(1, "SELECT id, data, ts FROM " .. sysbench.opt.table, sysbench.opt.scatter)
   end
   if not statements then
      statements = {}
      for host, range in ipairs(client.hosts) do
         statements[host] = { host = host, sql = union(range) }
      end
   end
   client.query_all(statements, sysbench.opt.scatter)
end
