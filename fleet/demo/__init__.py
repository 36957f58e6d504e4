"""A throw-away cluster on loopback: database servers, shards, sample data, the proxy."""
