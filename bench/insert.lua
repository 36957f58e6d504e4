-- A new object of about 1.1 KB, colocated by an ID in its JSON: a comment goes to its pin's shard.

local client = require("client")

local TEXT

function event()
   TEXT = TEXT or ("All work and no play makes Jack a dull boy. "):rep(100):sub(1, sysbench.opt.text)
   local shard, host = client.random_shard()
   local pin = client.base(shard, "pins") + sysbench.rand.uniform(1, sysbench.opt.pins)
   local name = client.physical and ("`db%05d`.comments"):format(shard) or "comments"
   local user = client.base(shard, "users") + 1
   local sql = ([[INSERT INTO %s (data) VALUES ('{"pin_id": %.0f, "user_id": %.0f, "text": "%s"}')]]):format(name, pin, user, TEXT)
   client.query(host, sql, 1)
end
