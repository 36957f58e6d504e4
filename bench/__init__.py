"""The benchmark: the same statements direct, through other proxies, and through shardgate, in one run.

    python -m bench [--rounds 5] [--seconds 5] [--threads 16] [--only WORKLOAD] …
    python -m bench --profile WORKLOAD
    python -m bench.calls [WORKLOAD]    calls of functions a statement: calls.py
    python -m bench.growth              by shards, IDs, clients, workers and rows, as plots: growth.py
    python -m bench.streams             memory while ten million rows pass: streams.py
    python -m bench.misses              planning without the cache, with both readers and with one: misses.py

How it measures, and how to read what it prints, is docs/benchmarks.md. In the order of a run:

    __main__     the options                    stage       everything up and filled
    cluster      `shardgate demo --empty` as a child, and its hosts
    rows         what the hosts hold            proxies     HAProxy and others, their configurations
    setup        what a proxy is set up for     kingshard   one of them, which shards by itself
    workloads    what is measured               sysbench    one run of the client, and what it says
    usage        CPU time and memory of others  rounds      the routes in turn, round after round
    results      cells, medians, ratios         report      tables
    history      one JSON line a run            tables      the last of them as Markdown
    profiling    py-spy instead of numbers
    growth       points along an axis           figures     their JSON, plots and page
    plots        SVG

*.lua are the workloads for sysbench; client.lua and oltp.lua are what they share.
"""
