#!/bin/sh
# Usage: create.sh FOLDER, that of the settings. Makes what the topology names on the servers, and publishes it unless
# there is one already. Run again, it changes nothing.
set -eu
config=$1/shardgate.yaml
if shardgate topology get --config "$config" >/dev/null 2>&1; then
  exec shardgate fleet create --config "$config" --yes
fi
shardgate fleet create --config "$config" --topology "$1/topology.yaml" --yes
shardgate topology put "$1/topology.yaml" --config "$config" --yes
