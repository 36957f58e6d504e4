"""Photos with IDs that sort by time: Instagram's scheme. README.md says how to start it."""
