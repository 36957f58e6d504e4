"""The benchmark: the same statements direct, through HAProxy, and through shardgate, in one run.

    python -m bench [--rounds 5] [--seconds 5] [--threads 16] [--only WORKLOAD] …
    python -m bench --profile WORKLOAD
    python -m bench.streams             memory while ten million rows pass: streams.py
    python -m bench.misses              planning without the cache, with both readers and with one: misses.py

How it measures, and how to read what it prints, is docs/benchmarks.md. In the order of a run:

    __main__     the options                    cluster     `shardgate demo --empty` as a child, and its hosts
    rows         what the hosts hold            haproxy     HAProxy in TCP mode before each host
    workloads    what is measured               sysbench    one run of the client, and what it says
    usage        CPU time and memory of others  rounds      the routes in turn, round after round
    results      cells, medians, ratios         report      tables
    history      one JSON line a run            profiling   py-spy instead of numbers

*.lua are the workloads for sysbench; client.lua is what they share.
"""
