-- sysbench's oltp_read_write.

require("oltp").run("oltp_read_write")
