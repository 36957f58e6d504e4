"""What operators look at: metrics, health and the status page.

`snapshot` reads the running process into plain data; `metrics`, `page` and `server` only see that data.
"""
