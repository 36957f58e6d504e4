-- One row of about 1.1 KB from a database that passes through: the proxy's cost without sharding.

local client = require("client")

function event()
   client.query(1, ("SELECT id, body FROM legacy.items WHERE id = %d"):format(sysbench.rand.uniform(1, sysbench.opt.items)), 1)
end
