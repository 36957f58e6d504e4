"""Examples, each a folder with a README: what a newcomer tries first, and copies."""
