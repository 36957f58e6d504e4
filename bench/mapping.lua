-- The last 50 pins of a board, by the board's ID: a mapping table, in the order of its index.

local client = require("client")

function event()
   local shard, host = client.random_shard()
   local board = client.base(shard, "boards") + sysbench.rand.uniform(1, sysbench.opt.boards)
   local name = client.physical and ("`db%05d`.board_has_pins"):format(shard) or "board_has_pins"
   local sql = ("SELECT pin_id, sequence FROM %s WHERE board_id = %.0f ORDER BY sequence DESC LIMIT 50"):format(name, board)
   client.query(host, sql, 50)
end
