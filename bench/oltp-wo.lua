-- sysbench's oltp_write_only.

require("oltp").run("oltp_write_only")
