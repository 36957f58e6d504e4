-- sysbench's own transactions (oltp_read_write and others) on the tables sbtest1, sbtest2, … of the database
-- that is not sharded. They use sysbench's driver and its options; those of client.lua are known, and unused.

local oltp = {}

function oltp.run(script)
   require(script)
   for _, name in ipairs({ "targets", "user", "password", "database", "physical", "shards", "pins", "boards", "items",
                           "scatter", "text" }) do
      sysbench.cmdline.options[name] = { "unused", "" }
   end
   sysbench.hooks.report_cumulative = function(stat)
      print(('bench {"events": %d, "seconds": %.6f}'):format(stat.events, stat.time_total))
   end
end

return oltp
