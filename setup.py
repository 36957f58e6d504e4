"""What is compiled where there is a compiler and Python's headers. Without them the package is whole, too."""

from setuptools import Extension, setup

setup(ext_modules=[Extension("proxy.wire._row_packets", ["proxy/wire/_row_packets.c"], optional=True)])
