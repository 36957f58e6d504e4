"""A throw-away cluster on loopback: database servers, shards, sample data, the proxy.

options   what it can be told            cluster     the parts, brought up step by step
run       signals, waiting, the end      workspace   the folder, gone when the demo is
servers, zookeeper, proxy: one kind of child process each; process: what they share
programs  finding and initialising a server; replication: slaves
documents the configuration; schema.yaml the tables; sample, words, load: the rows
"""

from demo.options import DemoOptions
from demo.run import run

__all__ = ["DemoOptions", "run"]
