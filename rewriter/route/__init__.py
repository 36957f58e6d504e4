"""Which tables a statement names, and which shards their rows are on."""
