-- One object of about 1.1 KB by its ID.

local client = require("client")

function event()
   local shard, host = client.random_shard()
   local pin = sysbench.rand.uniform(1, sysbench.opt.pins)
   local base = client.base(shard, "pins")
   local sql
   if client.physical then
      sql = ("SELECT (local_id + %.0f) AS id, data, ts FROM `db%05d`.pins WHERE local_id = %d"):format(base, shard, pin)
   else
      sql = ("SELECT id, data, ts FROM pins WHERE id = %.0f"):format(base + pin)
   end
   client.query(host, sql, 1)
end
