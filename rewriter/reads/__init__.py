"""SELECT over shards: fanned out, grouped, or gathered."""
