-- sysbench's oltp_read_only.

require("oltp").run("oltp_read_only")
