-- One object of about 1.1 KB by its ID, by a prepared statement.

local client = require("client")

function event()
   local shard, host = client.random_shard()
   local pin = sysbench.rand.uniform(1, sysbench.opt.pins)
   local base = client.base(shard, "pins")
   if client.physical then -- one statement a shard, as who knows the shards would have it
      local sql = "SELECT (local_id + %.0f) AS id, data, ts FROM `db%05d`.pins WHERE local_id = ?"
      client.execute(host, sql:format(base, shard), pin, 1)
   else
      client.execute(host, "SELECT id, data, ts FROM pins WHERE id = ?", base + pin, 1)
   end
end
