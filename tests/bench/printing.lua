-- Runs a workload that prints its statements, "sql HOST STATEMENT", in place of sending them.

local client = require("client")

client.connect = function()
   return {}
end
client.send = function(host, sql)
   print(("sql %d %s"):format(host, sql))
end
client.execute = function(host, sql, number) -- shardgate sends text, where the parameter stands
   client.send(host, (sql:gsub("%?", ("%.0f"):format(number))))
end
client.read = function()
   return 0
end
client.expect = function() end

dofile(os.getenv("WORKLOAD"))

function thread_done() end
