-- Objects by one list of IDs, 50 of them on 50 shards unless told otherwise, spread over all hosts.
--
-- A list longer than there are shards has several IDs of each. Physically: one UNION ALL statement a host, both
-- sent before the first answer is read, as the best application without a proxy would do it.

local client = require("client")

-- How many IDs a host gets: as many as the others, or one more.
local function share(host)
   local ids, hosts = sysbench.opt.ids, #client.hosts
   return math.floor(ids / hosts) + (host <= ids % hosts and 1 or 0)
end

-- `count` pins on shards that are neighbours, from a random one on: {shard, {local IDs}} each, none twice.
local function some_pins(range, count)
   local size = range.last - range.first + 1
   local start = sysbench.rand.uniform(0, size - 1)
   local pin = sysbench.rand.uniform(1, sysbench.opt.pins)
   local found = {}
   for n = 0, count - 1 do
      local nth, step = n % size, math.floor(n / size)
      if step == 0 then
         found[nth + 1] = { shard = range.first + (start + n) % size, pins = {} }
      end
      local pins = found[nth + 1].pins
      pins[#pins + 1] = (pin + n + step) % sysbench.opt.pins + 1
   end
   return found
end

function event()
   local statements, ids = {}, {}
   for host, range in ipairs(client.hosts) do
      local parts = {}
      for _, one in ipairs(some_pins(range, share(host))) do
         local base = client.base(one.shard, "pins")
         parts[#parts + 1] =
            ("SELECT (local_id + %.0f) AS id, data, ts FROM `db%05d`.pins WHERE local_id IN (%s)"):format(base, one.shard, table.concat(one.pins, ", "))
         for _, pin in ipairs(one.pins) do
            ids[#ids + 1] = ("%.0f"):format(base + pin)
         end
      end
      if #parts > 0 then
         local sql = #parts == 1 and parts[1] or "(" .. table.concat(parts, ") UNION ALL (") .. ")"
         statements[#statements + 1] = { host = host, sql = sql }
      end
   end
   if client.physical then
      client.query_all(statements, sysbench.opt.ids)
   else
      client.query(1, "SELECT id, data, ts FROM pins WHERE id IN (" .. table.concat(ids, ", ") .. ")", sysbench.opt.ids)
   end
end
