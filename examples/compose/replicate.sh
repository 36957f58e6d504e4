#!/usr/bin/env bash
# Usage: replicate.sh MASTER REPLICA [MASTER REPLICA …], each as host:port. Lets every replica replicate from its master
# by GTID and refuse writes. Only an empty server becomes a replica: one that a promotion has made a master stays one.
# ROOT_PASSWORD and REPLICATION_PASSWORD are in the environment.
set -euo pipefail
export MYSQL_PWD=$ROOT_PASSWORD

# ask HOST:PORT SQL
ask() { mysql --no-defaults --protocol=tcp -h "${1%:*}" -P "${1##*:}" -u root --batch --skip-column-names -e "$2"; }

databases="SELECT schema_name FROM information_schema.schemata
  WHERE schema_name NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')"

while [ $# -gt 0 ]; do
  master=$1 replica=$2
  shift 2
  if [ -n "$(ask "$replica" 'SHOW REPLICA STATUS')" ]; then
    ask "$replica" 'SET GLOBAL super_read_only = ON'  # gone after a restart
    echo "$replica replicates already"
    continue
  fi
  if [ -n "$(ask "$master" 'SHOW REPLICA STATUS')$(ask "$replica" "$databases")" ]; then
    echo "$replica is not touched: it has databases, or $master replicates itself"
    continue
  fi
  # Not in the binary log: the replica is no source of anybody.
  ask "$master" "SET sql_log_bin = 0;
    CREATE USER IF NOT EXISTS 'replication'@'%' IDENTIFIED BY '$REPLICATION_PASSWORD';
    GRANT REPLICATION SLAVE ON *.* TO 'replication'@'%'"
  ask "$replica" "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '${master%:*}', SOURCE_PORT = ${master##*:},
      SOURCE_USER = 'replication', SOURCE_PASSWORD = '$REPLICATION_PASSWORD', SOURCE_AUTO_POSITION = 1,
      GET_SOURCE_PUBLIC_KEY = 1;
    START REPLICA;
    SET GLOBAL super_read_only = ON"
  echo "$replica replicates from $master"
done
