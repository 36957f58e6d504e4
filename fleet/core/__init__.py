"""What every fleet tool stands on: hosts, steps, journal, lock, the runner, publishing.

A tool looks at what is there, and a pure function says the steps from there to what is wanted. The runner
writes them to the journal, takes them, and writes that they are done. Killed at any moment and run again, the
tool looks anew: what is done is no step any more.

    store       where the topology is and what the tools keep beside it: a file's folder, or ZooKeeper
    journal     the operations, their steps, how far each came
    hosts       bounded connections to the hosts
    steps       one step
    run         the runner
    errors      what is refused, what failed
"""
